#!/bin/sh
# Good and bad inputs of the sample, in a guest with two cards of 64 MiB.
fail() {
    echo "histogram_inputs: $*" >&2
    exit 1
}
# refused STATUS TEXT ARGUMENT...
refused() {
    wanted=$1 text=$2
    shift 2
    histogram "$@" >/tmp/out 2>&1
    status=$?
    [ $status = "$wanted" ] || fail "histogram $*: status $status instead of $wanted: $(cat /tmp/out)"
    grep -q "$text" /tmp/out || fail "histogram $*: no '$text' in: $(cat /tmp/out)"
}
counted() {
    histogram "$@" >/tmp/out 2>&1 || fail "histogram $*: $(cat /tmp/out)"
    grep -q ' yes$' /tmp/out || fail "histogram $*: not correct: $(cat /tmp/out)"
}
mkdir -p /tmp
cd /tmp || exit 1
: >empty
printf x >one
head -c 4097 /dev/urandom >crooked
head -c 3000001 /dev/urandom >random
dd if=/dev/zero of=large bs=1 count=0 seek=200M 2>/dev/null

refused 2 'No such file' missing
refused 2 'the file is empty' empty
refused 2 'not a regular file' /tmp
refused 2 'do not fit' large
refused 2 'there are only 2' --cards 3 one
refused 2 'at least 1' --cards 0 one
refused 2 'a number of cards' --cards two one
refused 2 'unknown option' --nonsense
for file in one crooked random /bin/busybox; do
    counted "$file"
    counted --cards 1 "$file"
done
histogram --json one crooked >/tmp/out || fail "json"
grep -q '"correct": true' /tmp/out || fail "json: $(cat /tmp/out)"
# A long name moves no column: the numbers of bytes end where their heading ends.
long=a-file-whose-name-is-longer-than-the-column-that-was-made-for-names
cp crooked $long
histogram one $long >/tmp/out || fail "a long name"
[ "$(awk '/^(file|one|a-file)/ { print index($0 " ", ($1 == "file" ? "bytes" : $1 == "one" ? " 1 " : "4097")) +
    ($1 == "file" ? 5 : $1 == "one" ? 2 : 4) }' /tmp/out | sort -u | wc -l)" = 1 ] || fail "columns: $(cat /tmp/out)"
# What was refused has left nothing behind.
orrery-smi --json | grep '"vram_used_bytes": 0' | wc -l | grep -qx 2 || fail "VRAM is still in use"
echo "all inputs behave"
