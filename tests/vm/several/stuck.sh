#!/bin/bash
# stuck.sh ORRERY_VM LOGS CARD: two VMs with two cards each at one switch, and a debugger that holds the last card when the guest
# asks for it (hand.sh). The first VM's card of that index writes to it.
set -euo pipefail
vm=$1 logs=$2
# shellcheck source=tests/system/runtime/hand.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../../system/runtime/hand.sh"
rm -rf -- "$logs"
mkdir -p -- "$logs"

hold() { # NUMBER
    hold_card "$(cat "$share/hold.$1")" "$logs/vm1/card3.log"
}
serve hold hold "$vm" --vms 2 --cards 2 --topology switch --memory 512M --timeout 240 --card-arg --gdb --card-arg 0 \
    --logs "$logs" --share "$share" -- kmod_fabric stuck "$3" >"$logs/out" 2>&1
if [ "$status" != 0 ] || ! grep -qx 'vm0: owner: passed' "$logs/out"; then
    echo "stuck.sh: status $status" >&2
    cat "$logs/out" >&2
    exit 1
fi
