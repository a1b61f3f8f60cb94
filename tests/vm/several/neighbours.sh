#!/bin/bash
# neighbours.sh ORRERY_RUN LOGS: the sample of ranks in a ring over two VMs, and what it says when one VM ends.
set -uo pipefail
run=$1 logs=$2
fail() {
    echo "neighbours.sh: $*" >&2
    cat "$logs/out" >&2
    exit 1
}
rm -rf "$logs"
mkdir -p "$logs"
"$run" -n 4 --vms 2 --topology ring --memory 512M --timeout 120 --logs "$logs/whole" -- neighbours >"$logs/out" 2>&1 ||
    fail "status $?"
for rank in 0 1 2 3; do
    next=$(((rank + 1) % 4))
    grep -qE "^$rank: rank $rank \(VM $((rank / 2))\) to rank $next \(VM $((next / 2))\): 12 halves of 262144 bytes, [0-9.]+ us of model time each, [0-9.]+ GB/s, correct$" "$logs/out" ||
        fail "rank $rank"
done
# More ranks than cards of a VM, and another number in each.
"$run" -n 3 --vms 2 --cards 1 --topology chain --memory 512M --timeout 120 --logs "$logs/shared" -- neighbours --rounds 2 >"$logs/out" 2>&1 ||
    fail "status $?, three ranks"
[ "$(grep -c ', correct$' "$logs/out")" = 3 ] || fail "three ranks"

"$run" -n 4 --vms 2 --topology ring --memory 512M --timeout 120 --allow-vm-exit --logs "$logs/crash" -- \
    neighbours --rounds 20 --crash 2:3 >"$logs/out" 2>&1
status=$?
# That of the VM that ended, or of the other, if orrery-vm heard of that one's end before.
[ $status = 122 ] || [ $status = 1 ] || fail "status $status instead of that of the VM that ended"
grep -q "^orrery-vm: vm$((status / 122)) was the first to fail, with status $status\$" "$logs/out" || fail "which VM"
grep -q "^orrery-vm: error: QEMU .* before the command's end" "$logs/out" || fail "no VM has ended"
# Both of VM 0 have a neighbour there. Who comes to his end first has the other ended, who may have said it by then.
grep -qE "^[01]: neighbours: rank [01] \(VM 0\): orrErrorPeerAccess: semaphore '(room at rank 2|halves from rank 3) \(VM 1\)' " "$logs/out" ||
    fail "nobody says who is missed"
grep -qE '^orrery-run: rank [01] \(VM 0\) ended with status 1, the first to fail here: the others are ended$' "$logs/out" ||
    fail "who failed"
