#!/bin/bash
# cable.sh ORRERY_VM LOGS OPTIONS...: two VMs, each with a card, and a hand at the cable between them, for which the first asks.
set -euo pipefail
vm=$1 logs=$2
shift 2
# shellcheck source=tests/system/runtime/hand.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../../system/runtime/hand.sh"
rm -rf -- "$logs"
mkdir -p "$logs"

pull() { # NUMBER
    echo "$(cat "$share/cable.$1") 0" | command_card "$(control_socket "$logs/vm0" 0)"
}
serve cable pull "$vm" --vms 2 --cards 1 "$@" --control --memory 512M --timeout 240 \
    --module-params mailbox_timeout_ms=20000 --logs "$logs" --share "$share" -- umd_cable >"$logs/out" 2>&1
for side in 0 1; do
    grep -qx "vm$side: side $side: passed" "$logs/out" || status=1
done
[ "$status" = 0 ] || {
    cat "$logs/out" >&2
    tail -n 30 "$logs"/vm*/guest.log >&2
}
exit "$status"
