#!/bin/bash
# cable.sh ORRERY_VM LOGS OPTION... -- COMMAND...: runs COMMAND in a VM of two cards (CABLE_CARDS), and has a hand at a cable, that of
# the first port of the first card (CABLE_CARD, CABLE_PORT; switches are counted on behind the cards), which the guest sees by a file /share/cables. It asks for a `cable` with
# `unplug` or `plug` in it (hand.sh), and has the card's answer.
set -euo pipefail
vm=$1 logs=$2
shift 2
# shellcheck source=tests/system/runtime/hand.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/hand.sh"
rm -rf -- "$logs"
: >"$share/cables"

pull() { # NUMBER
    echo "$(cat "$share/cable.$1") ${CABLE_PORT:-0}" | command_card "$(control_socket "$logs" "${CABLE_CARD:-0}")"
}
serve cable pull "$vm" --cards "${CABLE_CARDS:-2}" --logs "$logs" --control --share "$share" "$@"
exit "$status"
