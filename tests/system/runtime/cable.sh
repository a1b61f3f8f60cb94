#!/bin/bash
# cable.sh ORRERY_VM LOGS OPTION... -- COMMAND...: runs COMMAND in a VM of two cards (CABLE_CARDS), and has a hand at a cable, that of
# the first port of the first card (CABLE_CARD, CABLE_PORT; switches are counted on behind the cards), which the guest sees by a file /share/cables. It asks for a `cable` with
# `unplug` or `plug` in it (hand.sh), and has the card's answer. Who has not had it pulled once has tested nothing: that fails.
set -euo pipefail
vm=$1 logs=$2
shift 2
# shellcheck source=tests/system/runtime/hand.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/hand.sh"
rm -rf -- "$logs"
: >"$share/cables"

pulled=0
pull() { # NUMBER
    local wanted answer
    wanted=$(cat "$share/cable.$1")
    answer=$(echo "$wanted ${CABLE_PORT:-0}" | command_card "$(control_socket "$logs" "${CABLE_CARD:-0}")")
    [ "$wanted $answer" != "unplug ok" ] || pulled=$((pulled + 1))
    echo "$answer"
}
serve cable pull "$vm" --cards "${CABLE_CARDS:-2}" --logs "$logs" --control --share "$share" "$@"
if [ "$status" = 0 ] && [ "$pulled" = 0 ]; then
    echo "cable.sh: nobody had the cable pulled ($number requests): what was to be tested was not" >&2
    exit 1
fi
exit "$status"
