#!/bin/bash
# held.sh ORRERY_VM LOGS OPTION... -- COMMAND...: runs COMMAND in a VM of three cards that keep step, and has a debugger for the
# first, which the guest sees by a file /share/debugger. It asks for a `hold` with `on` or `off` in it (hand.sh).
set -euo pipefail
vm=$1 logs=$2
shift 2
# shellcheck source=tests/system/runtime/hand.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../../system/runtime/hand.sh"
rm -rf -- "$logs"
: >"$share/debugger"

hold() { # NUMBER
    hold_card "$(cat "$share/hold.$1")" "$logs/card0.log"
    echo ok
}
serve hold hold "$vm" --cards 3 --sync=lockstep --card-arg --gdb --card-arg 0 --logs "$logs" --share "$share" "$@"
if [ "$status" = 0 ] && [ "$number" = 0 ]; then
    echo "held.sh: nobody had the card held: what was to be tested was not" >&2
    exit 1
fi
exit "$status"
