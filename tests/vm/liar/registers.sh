#!/bin/bash
# registers.sh ORRERY_VM LOGS OPTION... -- COMMAND...: runs COMMAND in a VM of two cards; the guest says by a `lie` (hand.sh),
# a line for the control socket of the first card, what that card shall tell, and has its answer.
set -euo pipefail
vm=$1 logs=$2
shift 2
# shellcheck source=tests/system/runtime/hand.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../../system/runtime/hand.sh"
rm -rf -- "$logs"

tell() { # NUMBER
    command_card "$(control_socket "$logs" 0)" <"$share/lie.$1"
}
serve lie tell "$vm" --cards 2 --logs "$logs" --control --share "$share" "$@"
if [ "$status" = 0 ] && [ "$number" = 0 ]; then
    echo "registers.sh: nobody had the card lie: what was to be tested was not" >&2
    exit 1
fi
exit "$status"
