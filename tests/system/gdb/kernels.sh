#!/bin/bash
# gdb-multiarch on kernels: it is given no file, and finds the module by itself.
#   kernels.sh KERNEL-RIG MODULE.elf
set -euo pipefail
rig=$1 module=$2
# shellcheck source=tests/system/gdb/rig.sh
. "$(dirname "$0")/rig.sh"
start_rig "$rig" "$module"
until_ended() { # N: so many launches
    until [ "$(grep -c '^end' "$folder/rig.out")" -ge "$1" ]; do
        kill -0 "$rig_pid" 2>/dev/null || fail "the rig ended"
        sleep 0.05
    done
}
# The same without a debugger, for the model time.
echo scale >&3
until_ended 1

source=$(dirname "$0")/scale_kernel.cc
line_of() { grep -n "$1" "$source" | cut -d: -f1; }
cat > "$folder/script" <<END
set pagination off
set remotetimeout 60
set confirm off
set height 0
set width 0
set breakpoint pending on
set solib-search-path $(dirname "$module")
target remote 127.0.0.1:$port
info threads
break first_of
shell echo scale > $folder/in
continue
info sharedlibrary
printf "group %d of %d\n", \$group_x, \$grid_x
backtrace
print args->n
print *args
delete
break scale_kernel.cc:$(line_of "line of the store")
continue
printf "vl %d\n", \$vl
next
python
# To the store of 32-bit elements of vectors itself, wherever the line begins.
while int(gdb.parse_and_eval("*(unsigned *)\$pc")) & 0x707f != 0x6027:
    gdb.execute("stepi", to_string=True)
# Whichever registers the compiler took.
values = [float(gdb.parse_and_eval("\$v%d.f[3]" % n)) for n in range(32)]
print("scaled %d" % (7.5 in values))
end
info threads
delete
watch -location args->y[999]
continue
print args->y[999]
delete
break fails
shell echo fails > $folder/in
continue
delete
continue
backtrace
monitor modules
detach
END
gdb-multiarch -nx -batch -x "$folder/script" > "$folder/gdb.out" 2>&1 || fail "gdb ended with status $?"
until_ended 3
expect() { grep -q -- "$1" "$folder/gdb.out" || fail "no '$1'"; }
expect 'Thread 1 (core 0, idle: no kernel runs)'
expect "Yes  *.*/$(basename "$module")"
expect 'hit Breakpoint 1, .*first_of (args=0x1000000000) at .*scale_kernel.cc'
expect 'group 0 of 2'
expect '^#1 .* in scale (args=0x1000000000)'
expect '= {x = 0x1000001000, .* n = 1000, factor = 2.5}'
expect '^vl 64'
expect '^scaled 1'
expect 'Thread 2 (core 1, group (1,0,0) item (0,0,0))'
expect 'Thread 2 hit Hardware watchpoint'
expect 'New value = 2497.5'
expect 'received signal SIGSEGV'
expect "^#0 .*fails (args=0x1000000000) at .*scale_kernel.cc:$(line_of 'line of the fault')"
expect "^add-symbol-file $(basename "$module") -o 0x300000000000"
# ORR_DONE_OK, and ORR_DONE_FAULT for the one that fails; the debugger costs no model time.
[ "$(grep -c '^end status 0 sum 1248750 ' "$folder/rig.out")" = 2 ] || fail "the kernel computed something else"
[ "$(grep '^end status 0' "$folder/rig.out" | sort -u | wc -l)" = 1 ] || fail "the model time is another one"
grep -q '^end status 2 ' "$folder/rig.out" || fail "the fault was not reported"
exec 3>&-
wait "$rig_pid" || fail "the rig ended with status $?"
rig_pid=''
echo PASSED
