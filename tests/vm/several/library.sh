#!/bin/bash
# library.sh ORRERY_VM LOGS OPTIONS...: memory and semaphores of a card of one VM, which the library of another writes to and
# signals; in the end that one's VM ends.
set -uo pipefail
vm=$1 logs=$2
shift 2
fail() {
    echo "library.sh: $*" >&2
    cat "$logs/out" >&2
    tail -n 30 "$logs"/vm*/guest.log >&2
    exit 1
}
rm -rf "$logs"
mkdir -p "$logs"
"$vm" --vms 2 "$@" --memory 512M --timeout 240 --module-params mailbox_timeout_ms=20000 --allow-vm-exit --logs "$logs" -- umd_fabric >"$logs/out" 2>&1
status=$?
grep -qx 'vm0: owner: passed' "$logs/out" || fail "status $status"
grep -qx 'vm1: writer: about to end' "$logs/out" || fail "the other did not come to its end"
[ $status = 122 ] || fail "status $status instead of that of the VM that ended"
