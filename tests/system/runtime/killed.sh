#!/bin/bash
# killed.sh ORRERY_VM LOGS CARDS OPTION... -- COMMAND...: runs COMMAND in a VM of so many cards, a chain, and kills their
# processes one after the other, the first one first, as the guest asks for a `kill` (hand.sh). The guest knows by
# /share/killer that it may ask. No other card may end.
set -euo pipefail
vm=$1 logs=$2 cards=$3
shift 3
# shellcheck source=tests/system/runtime/hand.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/hand.sh"
rm -rf -- "$logs"
: >"$share/killer"

pids=
kill_card() { # NUMBER
    [ -n "$pids" ] || pids=$(sed -n '/"cards"/,$ s/.*"pid": \([0-9]*\).*/\1/p' "$logs/run.json")
    for pid in $(echo "$pids" | tail -n "+$(($1 + 1))"); do
        kill -0 "$pid" 2>/dev/null || { echo "killed.sh: a card that nobody killed has ended; logs: $logs" >&2; exit 1; }
    done
    kill -KILL "$(echo "$pids" | sed -n "$(($1 + 1))p")"
    echo ok
}
serve kill kill_card "$vm" --cards "$cards" --logs "$logs" --allow-card-exit --share "$share" "$@"
echo "killed.sh: $number cards killed" >&2
exit "$status"
