#!/bin/bash
# fabric.sh ORRERY_VM LOGS OPTIONS...: memory of a card of one VM, and a card of another that writes to it and whose VM
# ends. With --faults among the options messages are lost instead, or forged, or come with an old key, and all VMs live.
set -uo pipefail
vm=$1 logs=$2
shift 2
fail() {
    echo "fabric.sh: $*" >&2
    cat "$logs/out" >&2
    tail -n 30 "$logs"/vm*/guest.log >&2
    exit 1
}
rm -rf "$logs"
mkdir -p "$logs/share"
what=() wanted=122 # of the VM that ended
[[ " $* " == *" --faults "* ]] && what=(losses) wanted=0
[[ " $* " == *" forge "* ]] && what=(forged)
[[ " $* " == *" stale "* ]] && what=(stale)
"$vm" --vms 2 "$@" --memory 512M --timeout 240 --module-params mailbox_timeout_ms=20000 --allow-vm-exit --logs "$logs" --share "$logs/share" -- \
    kmod_fabric "${what[@]}" >"$logs/out" 2>&1
status=$?
grep -qx 'vm0: owner: passed' "$logs/out" || fail "status $status"
[ $status = $wanted ] || fail "status $status instead of $wanted"
if [ "${what[*]}" = forged ]; then
    grep -q 'requests came with a wrong key, the last as of card number 512:' "$logs/vm0/guest.log" || fail "the owner's log"
    grep -q 'card number 1 has refused .* for its key' "$logs/vm1/guest.log" || fail "the other's log"
fi
[ $wanted = 0 ] && exit
grep -q 'came with a handle that nobody here has made' "$logs/vm0/guest.log" || fail "the owner's log"
grep -q 'came with a handle that the card with the number 1 does not know' "$logs/vm1/guest.log" || fail "the other's log"
