#!/bin/bash
# prepare.sh that is ended at any moment leaves nothing running, and the side that fails ends the other.
set -euo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
fail() { echo "FAILED: $1" >&2; exit 1; }

mkdir -p "$work/tools/vm"
cp -r "$root/tools/make" "$work/tools/"
# A duration that nobody else sleeps for.
nap="$((RANDOM + 100000)).$$"
printf '#!/bin/sh\nexec sleep %s\n' "$nap" > "$work/tools/vm/tree.sh"
printf '#!/bin/sh\nexit 0\n' > "$work/tools/vm/kbuild.sh"
chmod +x "$work/tools/vm"/*.sh
# Each command of bash takes its time, so that signals come between them.
printf 'set -o functrace\ntrap "sleep 0.03" DEBUG\n' > "$work/slow"
left() { pgrep -f -x "sleep $nap" > /dev/null; }
# What was killed may need a CPU to end.
until_nothing_is_left() {
    for _ in $(seq 600); do
        left || return 0
        sleep 0.1
    done
    return 1
}

for moment in 0.1 0.2 0.3 0.4 0.5 0.6 0.8 1; do
    BASH_ENV=$work/slow setsid "$work/tools/make/prepare.sh" lts sleep "$nap" > /dev/null 2>&1 &
    run=$!
    # Its group is there.
    until kill -0 -- "-$run" 2> /dev/null || ! kill -0 "$run" 2> /dev/null; do sleep 0.01; done
    sleep "$moment"
    kill -TERM -- "-$run" 2> /dev/null || fail "it has ended by itself"
    wait "$run" && fail "status 0 after a signal"
    if ! until_nothing_is_left; then
        pkill -f -x "sleep $nap"
        fail "ended after $moment s it leaves a side running"
    fi
done

status=0
timeout 120 "$work/tools/make/prepare.sh" lts sh -c 'exit 7' > /dev/null 2>&1 || status=$?
[ $status = 7 ] || fail "status $status, not 7, when the programs fail"
until_nothing_is_left || fail "the other side lives on"
