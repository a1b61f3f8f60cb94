#!/bin/bash
# killed.sh ORRERY_VM LOGS CARDS OPTION... -- COMMAND...: runs COMMAND in a VM of so many cards, a chain, and kills their
# processes one after the other, the first one first, as the guest asks: by a file /share/kill.N, N from 0 on. The answer is
# /share/kill.N.done. The guest knows by /share/killer that it may ask. No other card may end.
set -euo pipefail
vm=$1 logs=$2 cards=$3
shift 3
share=$(mktemp -d)
run=
finish() {
    [ -z "$run" ] || kill "$run" 2>/dev/null || true
    rm -rf -- "$share"
}
trap finish EXIT
rm -rf -- "$logs"
: >"$share/killer"

"$vm" --cards "$cards" --logs "$logs" --allow-card-exit --share "$share" "$@" &
run=$!
number=0
pids=
while kill -0 "$run" 2>/dev/null; do
    if [ ! -e "$share/kill.$number" ]; then
        sleep 0.02
        continue
    fi
    [ -n "$pids" ] || pids=$(sed -n '/"cards"/,$ s/.*"pid": \([0-9]*\).*/\1/p' "$logs/run.json")
    for pid in $(echo "$pids" | tail -n "+$((number + 1))"); do
        kill -0 "$pid" 2>/dev/null || { echo "killed.sh: a card that nobody killed has ended; logs: $logs" >&2; exit 1; }
    done
    kill -KILL "$(echo "$pids" | sed -n "$((number + 1))p")"
    : >"$share/kill.$number.done"
    number=$((number + 1))
done
wait "$run" && status=0 || status=$?
run=
echo "killed.sh: $number cards killed" >&2
exit "$status"
