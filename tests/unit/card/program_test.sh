#!/bin/sh
# orrery-card as a process: says when it listens, ends cleanly on a signal, refuses bad options with one line.
#   program_test.sh PATH-OF-ORRERY-CARD
set -eu
card=$1
folder=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill -KILL "$pid" 2>/dev/null; rm -rf "$folder"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }

for signal in TERM INT HUP; do
    mkfifo "$folder/out"
    "$card" --socket "$folder/card.sock" --index 3 --link "0:listen:$folder/link.sock" --log "$folder/log" \
        > "$folder/out" &
    pid=$!
    read -r line < "$folder/out"
    [ "$line" = ready ] || fail "said '$line'"
    [ -S "$folder/card.sock" ] || fail "no socket"
    [ -S "$folder/link.sock" ] || fail "no link socket"
    # A second card must not take a living one's socket.
    "$card" --socket "$folder/card.sock" --index 4 2> "$folder/error" > /dev/null && fail "took a socket in use"
    [ "$(wc -l < "$folder/error")" = 1 ] || fail "more than one line: $(cat "$folder/error")"
    kill -s "$signal" "$pid"
    wait "$pid" || fail "exit status $? after SIG$signal"
    pid=
    [ ! -e "$folder/card.sock" ] || fail "SIG$signal left the socket behind"
    [ ! -e "$folder/link.sock" ] || fail "SIG$signal left the link's socket behind"
    rm "$folder/out"
done

# refused TEXT OPTION...: exits non-zero, with one line on stderr that has the text, and without "ready".
refused() {
    text=$1
    shift
    "$card" "$@" > "$folder/out" 2> "$folder/error" && fail "took $*"
    grep -q -- "$text" "$folder/error" || fail "$*: no '$text' in: $(cat "$folder/error")"
    [ "$(wc -l < "$folder/error")" = 1 ] || fail "$*: more than one line"
    [ ! -s "$folder/out" ] || fail "$*: wrote to stdout"
}
refused "--socket" --index 0
refused "--index" --socket "$folder/s"
refused "power of two" --socket "$folder/s" --index 0 --vram 100M
refused "SKU has 4 ports" --socket "$folder/s" --index 0 --link "5:connect:$folder/l"
refused "cannot be read" --socket "$folder/s" --index 0 --sku "$folder/none"
refused "neither a SKU that comes with Orrery" --socket "$folder/s" --index 0 --sku orrery-2
refused "key" --socket "$folder/s" --index 0 --fuses /dev/null
refused "log" --socket "$folder/s" --index 0 --log "$folder/none/log"
refused "No such file" --socket "$folder/none/s" --index 0
refused "recording cannot be made" --socket "$folder/s" --index 0 --record "$folder/none/x.otrace"
refused "gdb" --socket "$folder/s" --index 0 --gdb 70000
[ ! -e "$folder/s" ] || fail "a refused start left a socket"
"$card" --help > "$folder/out" || fail "--help failed"
grep -q -- --spin-us "$folder/out" || fail "--help does not help"
"$card" --sku list > "$folder/out" || fail "--sku list failed"
[ "$(cat "$folder/out")" = "$(printf 'orrery-1\norrery-0\norrery-edge')" ] || fail "--sku list: $(cat "$folder/out")"
echo PASSED
