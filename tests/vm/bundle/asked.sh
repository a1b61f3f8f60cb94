#!/bin/bash
# asked.sh ORRERY-VM ORRERY-STEP FOLDER: a report that is asked for (SIGUSR1) ends nothing, whenever that is; and a card that may end is no
# cause.
set -euo pipefail
vm=$(realpath "$1") step=$(realpath "$2") folder=$3
rm -rf "${folder:?}"
mkdir -p "$folder"
folder=$(realpath "$folder")
die() {
    echo "asked.sh: $*" >&2
    tail -n 8 "$folder"/said* | sed 's/^/    /' >&2
    exit 1
}
ends_well() { wait "$1" || die "$2: it ended with status $?"; }
pid_of() { sed -n 's/.*"pid": \([0-9]*\).*/\1/p' "$1" | head -n 1; }
qemu_of() { sed -n 's/.*"qemu": \([0-9]*\).*/\1/p' "$1"; }

# While cards start, again and again. Its own handlers are there from its first line on: before that it is no orrery-vm yet.
"$vm" --cards 4 --timeout 120 --logs "$folder/early" --report "$folder/early.tar" -- true > "$folder/said1" 2>&1 < /dev/null &
run=$!
until [ -e "$folder/early" ]; do sleep 0.01; done
until [ -e "$folder/early/run.json" ] || ! kill -USR1 $run 2> /dev/null; do sleep 0.01; done
ends_well $run "asked while its cards started"
"$step" bundle "$folder/early.tar" --where > "$folder/where" || die "the bundle does not open"
grep -qx 'kind: none' "$folder/where" || die "it has a cause: $(cat "$folder/where")"

# While one VM waits for the other, which still works.
mkdir "$folder/share"
# shellcheck disable=SC2016 # the guest's shell expands it
"$vm" --vms 2 --cards 1 --timeout 120 --share "$folder/share" --logs "$folder/two" --report "$folder/two.tar" \
    -- sh -c 'while [ "$ORR_VM" = 1 ] && [ ! -e /share/go ]; do sleep 0.1; done' > "$folder/said2" 2>&1 < /dev/null &
run=$!
until [ -e "$folder/two/vm0/run.json" ] && [ -e "$folder/two/vm1/run.json" ]; do
    kill -0 $run 2> /dev/null || die "two VMs do not start"
    sleep 0.05
done
while kill -0 "$(qemu_of "$folder/two/vm0/run.json")" 2> /dev/null; do sleep 0.05; done
kill -USR1 "$(pid_of "$folder/two/vm0/run.json")"
until [ -e "$folder/two.tar.vm0" ]; do
    kill -0 $run 2> /dev/null || die "the wait for the other VM has ended"
    sleep 0.05
done
kill -0 "$(qemu_of "$folder/two/vm1/run.json")" || die "the other VM has ended"
touch "$folder/share/go"
ends_well $run "asked while one VM waits for the other"

# A card that may end.
"$vm" --cards 2 --allow-card-exit --timeout 120 --logs "$folder/allowed" --report "$folder/allowed.tar" --faults '1:dispatch first=5 die' \
    -- histogram --cards 2 > "$folder/said3" 2>&1 < /dev/null && die "a program whose card died ended well"
"$step" bundle "$folder/allowed.tar" --where > "$folder/where" || die "the bundle does not open"
! grep -q 'card-died' "$folder/where" || die "the card that may end is the cause: $(cat "$folder/where")"
tar xOf "$folder/allowed.tar" orrery-bundle.json | grep '"ended": "was killed by signal 9' >/dev/null || die "how it ended is not there"
echo "asked while cards start, asked while a VM waits, a card that may end: the runs and their reports are as they should be"
