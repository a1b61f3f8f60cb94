#!/bin/bash
# card_death.sh ORRERY_VM LOGS [stopped] [OPTION...]: kills the first of two cards while the guest uses it. The guest's
# program has to learn of it from its system calls, without a crash or a hang, and the other card works on. A card that
# is stopped first dies with the guest's requests unread in its socket, which stock QEMU alone does not survive.
set -euo pipefail
vm=$1
logs=$2
shift 2
stopped=
if [ "${1-}" = stopped ]; then
    stopped=1
    shift
fi
share=$(mktemp -d)
trap 'rm -rf -- "$share"' EXIT
rm -rf -- "$logs"

"$vm" --cards 2 --timeout 120 --logs "$logs" --allow-card-exit --share "$share" "$@" -- \
    kmod_removal_test --gtest_also_run_disabled_tests '--gtest_filter=*TheCardDies' &
run=$!
while [ ! -e "$share/ready" ]; do
    kill -0 $run 2>/dev/null || { wait $run || true; echo "card_death.sh: the VM ended too early" >&2; exit 1; }
    sleep 0.1
done
sleep 0.5
card=$(sed -n '/"cards"/,$ s/.*"pid": \([0-9]*\).*/\1/p' "$logs/run.json" | head -n 1)
if [ -n "$stopped" ]; then
    kill -STOP "$card"
    sleep 2 # the driver looks at the card meanwhile
fi
kill -KILL "$card"
wait $run
