#!/bin/bash
# groups.sh ORRERY_RUN LOGS OPTIONS... -- SCENARIO...: members of groups on several machines, with these options of
# orrery-run. All members that live are told the same cause. In a scenario vm-* QEMU of a VM is killed, or stopped, in
# one *-vm-stands, which has to be the first, stopped for some seconds, and in switch-ends their switch is killed.
set -uo pipefail
run=$1 logs=$2
shift 2
options=()
while [ "$1" != -- ]; do
    options+=("$1")
    shift
done
shift
fail() {
    echo "groups.sh: $*" >&2
    cat "$logs/out" >&2
    exit 1
}
rm -rf "$logs"
mkdir -p "$logs/share"
"$run" "${options[@]}" --memory 512M --timeout 280 --share "$logs/share" --logs "$logs/run" -- umd_group_vms "$@" >"$logs/out" 2>&1 &
running=$!
wanted=0
if [[ $1 == vm-* || $1 == *-vm-stands ]]; then
    until [ -e "$logs/share/$1-waits" ]; do
        kill -0 $running 2>/dev/null || fail "it ended before a VM was to end"
        sleep 0.1
    done
    vm=$(cat "$logs/share/$1-waits")
    qemu=$(sed -n 's/.*"qemu": \([0-9]*\).*/\1/p' "$logs/run/vm$vm/run.json")
    [ -n "$qemu" ] || fail "no QEMU of VM $vm"
fi
if [[ $1 == *-vm-stands ]]; then
    kill -STOP "$qemu"
    : >"$logs/share/$1-stands"
    sleep 3
    kill -CONT "$qemu"
fi
if [[ $1 == vm-* ]]; then
    wanted=122 # of a VM that ended
    if [ "$1" = vm-stops ]; then
        kill -STOP "$qemu"
        until [ -e "$logs/share/$1-done-0" ]; do
            kill -0 $running 2>/dev/null || break
            sleep 0.1
        done
    fi
    kill -KILL "$qemu"
fi
if [ "$1" = switch-ends ]; then
    until [ -e "$logs/share/$1-waits" ]; do
        kill -0 $running 2>/dev/null || fail "it ended before the switch was to end"
        sleep 0.1
    done
    switch=$(sed -n '/"switches"/,$ s/.*"pid": \([0-9]*\).*/\1/p' "$logs/run/vm0/run.json")
    [ -n "$switch" ] || fail "no switch"
    kill -KILL "$switch"
fi
wait $running
status=$?
[ $status = $wanted ] || fail "status $status"
for scenario in "$@"; do
    grep -qE "^[0-9]+: $scenario: " "$logs/out" || fail "nobody says what became of $scenario"
    if [[ $scenario == vm-ends-* ]] && ! grep -qE "^[0-9]+: $scenario: the port is right$" "$logs/out"; then
        fail "nobody has looked at the port in the cause"
    fi
    # From whichever rank, but for who joins wrongly.
    [ "$scenario" = join-members ] && continue
    # Those on both sides of a VM that was between them say by which link they have seen it, and those on both sides of
    # a switch which of their own it was.
    [ "$(sed -n "s/^[0-9]*: $scenario: //p" "$logs/out" | sed -e '/^the port is right$/d' -e 's/: its card, node.*//' \
        -e 's/of rank [0-9]*: the link from port [0-9]* of its device [0-9]* \(to a switch went down\), .*/\1/' |
        sort -u | wc -l)" = 1 ] || fail "$scenario: several causes"
done
