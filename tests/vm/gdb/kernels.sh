#!/bin/bash
# gdb-multiarch stops a sample's kernel in a VM, longer than the driver lets a silent firmware be, and shows its
# source and variables; orrery-smi says who holds the card. The program ends right all the same, and the driver
# has restarted nothing.
#   kernels.sh LOGS FOLDER-OF-MODULES ORRERY-VM OPTION...
set -euo pipefail
logs=$1 modules=$2
shift 2
rm -rf "$logs"
mkdir -p "$logs"
share=$(mktemp -d)
vm_pid=''
trap '[ -z "$vm_pid" ] || kill "$vm_pid" 2>/dev/null || :
      rm -rf -- "$share"' EXIT
fail() {
    echo "FAILED: $*" >&2
    cat "$logs/gdb.out" "$logs/vm.out" >&2
    exit 1
}
: > "$logs/gdb.out"
"$@" --cards 1 --card-arg --gdb-kernels --card-arg 0 --logs "$logs/vm" --share "$share" -- \
    sh -c 'until [ -e /share/go ]; do sleep 0.1; done
           histogram & program=$!
           until orrery-smi | grep "^   held .*(kernels)"; do kill -0 $program || exit 1; sleep 0.1; done
           echo smi-said-it > /dev/kmsg; wait $program && dmesg' > "$logs/vm.out" 2>&1 &
vm_pid=$!
until port=$(sed -n 's/.*gdb may connect to 127.0.0.1:\([0-9]*\) for kernels/\1/p' "$logs/vm/card0.log" 2>/dev/null) &&
    [ -n "$port" ]; do
    kill -0 "$vm_pid" 2>/dev/null || fail "the VM ended"
    sleep 0.1
done
cat > "$logs/script" <<END
set pagination off
set confirm off
set remotetimeout 60
set breakpoint pending on
set solib-search-path $modules
target remote 127.0.0.1:$port
break histogram
shell touch $share/go
continue
printf "group %d of %d\n", \$group_x, \$grid_x
print args->bytes
print args->bins[255]
info threads
# The driver looks at the heartbeat four times a second, and would take the firmware for dead after six looks.
shell until { grep -q 'a debugger holds kernels' "$logs/vm/guest.log" && grep -q smi-said-it "$logs/vm/guest.log"; } || ! kill -0 $vm_pid; do sleep 0.1; done
shell sleep 3
delete
detach
END
gdb-multiarch -nx -batch -x "$logs/script" > "$logs/gdb.out" 2>&1 || fail "gdb ended with status $?"
wait "$vm_pid" || fail "the VM ended with status $?"
vm_pid=''
grep -q 'hit Breakpoint 1, histogram (args=0x[0-9a-f]*) at .*histogram/kernels.cc:[1-9]' "$logs/gdb.out" ||
    fail "no breakpoint with its line of source"
grep -q '^\$1 = [1-9]' "$logs/gdb.out" || fail "the kernel's argument is not shown"
grep -q '^\$2 = [0-9]' "$logs/gdb.out" || fail "what its argument points to is not shown"
grep -q '^   held .*by a debugger (kernels)' "$logs/vm.out" || fail "orrery-smi does not say that the card is held"
grep -q '^group [0-7] of [1-9]' "$logs/gdb.out" || fail "no group"
grep -q 'core 7, group (7,0,0) item (0,0,0)' "$logs/gdb.out" || fail "not all cores are threads"
grep -q 'a debugger holds kernels' "$logs/vm.out" || fail "the driver does not say that the card is held"
! grep -q 'the firmware was restarted' "$logs/vm.out" || fail "the firmware was restarted"
grep -q '^vmlinuz.* yes$' "$logs/vm.out" || fail "the histogram is wrong"
echo PASSED
