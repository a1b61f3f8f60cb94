#!/bin/bash
# A scripted session of gdb-multiarch.
#   session.sh live|replay GDB-RIG FIRMWARE-ELF
set -euo pipefail
kind=$1 rig=$2 elf=$3
# shellcheck source=tests/system/gdb/rig.sh
. "$(dirname "$0")/rig.sh"
start_rig "$rig" "$kind"

cat > "$folder/start" <<END
set pagination off
set confirm off
set height 0
set width 0
set remotetimeout 20
# An error would end the script.
python
class Refused(gdb.Command):
    def __init__(self):
        super().__init__("refused", gdb.COMMAND_USER)
    def invoke(self, command, tty):
        try:
            gdb.execute(command)
        except gdb.error as error:
            print("refused:", error)
Refused()
# Where the core goes on after it slept: in the loop of the firmware, however the compiler arranged that.
class BreakAfterSleep(gdb.Command):
    def __init__(self):
        super().__init__("break-after-sleep", gdb.COMMAND_USER)
    def invoke(self, which, tty):
        begin, end = (int(gdb.parse_and_eval("(unsigned long)&" + n)) for n in which.split())
        wfi, at, found = bytes.fromhex("73005010"), begin, 0
        while at < end:
            at = gdb.selected_inferior().search_memory(at, end - at, wfi)
            if at is None:
                break
            gdb.Breakpoint("*%#x" % (at + 4))
            at, found = at + 4, found + 1
        print("sleeps at", found, "places")
BreakAfterSleep()
# A function around the pc, itself or inlined into another one?
class Inside(gdb.Command):
    def __init__(self):
        super().__init__("inside", gdb.COMMAND_USER)
    def invoke(self, function, tty):
        block = gdb.block_for_pc(int(gdb.parse_and_eval("(unsigned long)\$pc")))
        names = []
        while block is not None and not block.is_global:
            if block.function is not None:
                names.append(block.function.print_name)
            block = block.superblock
        print("inside", function, any(n.split("(")[0].endswith(function) for n in names), names)
Inside()
end
target remote 127.0.0.1:$port
END

# It is there in every build, with code of its own or inlined.
pass='orrery::fw::Firmware::pass()'

if [ "$kind" = replay ]; then
    cat > "$folder/script" <<END
source $folder/start
printf "at-begin pc=%#lx ra=%ld\n", \$pc, \$ra
break *orr_main
continue
printf "at-main %d mstatus=%#lx\n", \$pc == (unsigned long)&orr_main, \$mstatus
delete
tbreak $pass
continue
inside Firmware::pass
break-after-sleep _start orr_bss_start
continue
printf "awake cycle=%ld instret=%ld\n", \$mcycle, \$minstret
set \$cycle = \$mcycle
set \$there = \$pc
stepi
printf "stepped %d %d\n", \$minstret > 0, \$pc != \$there
reverse-stepi
printf "stepped-back %d %d\n", \$mcycle == \$cycle, \$pc == \$there
continue
printf "awake-again %d %d\n", \$mcycle > \$cycle, *(unsigned *)(\$pc - 4) == 0x10500073
set \$slot = \$sp - 8
awatch *(unsigned long *)\$slot
continue
printf "watched %d %d\n", \$mcycle > \$cycle, \$pc != \$there
delete \$bpnum
set \$second = \$mcycle
reverse-continue
printf "back-awake %d %d\n", *(unsigned *)(\$pc - 4) == 0x10500073, \$mcycle < \$second
reverse-continue
printf "back-at-first %d %d\n", \$pc == \$there, \$mcycle == \$cycle
x/2i \$pc
refused set var *(unsigned long *)\$sp = 1
refused set \$pc = 0
delete
reverse-continue
printf "begin pc=%#lx\n", \$pc
continue
monitor where
monitor seek 0
maintenance flush register-cache
printf "sought pc=%#lx\n", \$pc
kill
END
    gdb-multiarch -nx -batch -x "$folder/script" "$elf" > "$folder/gdb.out" 2>&1 || fail "gdb ended with status $?"
    expect() { grep -q -- "$1" "$folder/gdb.out" || fail "no '$1'"; }
    expect 'at-begin pc=0x10000 ra=0'
    expect 'at-main 1 mstatus='
    expect 'inside Firmware::pass True'
    expect 'awake cycle=[1-9]'
    expect 'stepped 1 1'
    expect 'stepped-back 1 1'
    expect 'awake-again 1 1'
    expect 'Hardware access (read/write) watchpoint'
    expect 'watched 1 1'
    expect 'back-awake 1 1'
    expect 'back-at-first 1 1'
    expect '=> 0x8'
    expect 'refused: Cannot access memory'
    expect 'refused: Could not write register'
    expect 'begin pc=0x10000'
    expect 'No more reverse-execution history'
    expect 'sought pc=0x10000'
    wait "$rig_pid" || fail "the rig ended with status $?"
    rig_pid=''
    echo PASSED
    exit 0
fi

cat > "$folder/script" <<END
source $folder/start
tbreak $pass
continue
inside Firmware::pass
break-after-sleep _start orr_bss_start
continue
set \$there = \$pc
printf "awake %d mtvec=%#lx\n", \$mcycle > 0, \$mtvec
monitor where
shell sleep 0.3
monitor where
monitor why
monitor queues
stepi
printf "stepped %d\n", \$pc != \$there
continue
set \$before = \$instret
set \$slot = \$sp - 8
awatch *(unsigned long *)\$slot
continue
printf "watched %d\n", \$pc != \$there
delete
set \$kept = \$t6
set \$t6 = 0x1234
printf "register %#lx\n", \$t6
set \$t6 = \$kept
set \$word = *(unsigned long *)\$sp
set var *(unsigned long *)\$sp = 0x5678
printf "memory %#lx\n", *(unsigned long *)\$sp
set var *(unsigned long *)\$sp = \$word
x/gx 0x4000000000
refused x/gx 0x10000000
printf "ready-for-interrupt\n"
continue
printf "interrupted %d\n", \$mcycle > 0
detach
END
: > "$folder/gdb.out"
gdb-multiarch -nx -batch -x "$folder/script" "$elf" > "$folder/gdb.out" 2>&1 &
gdb_pid=$!
until grep -q ready-for-interrupt "$folder/gdb.out"; do
    kill -0 "$gdb_pid" 2>/dev/null || fail "gdb ended early"
    sleep 0.1
done
# gdb hands its own SIGINT on, but only once it waits for the target, which runs then.
runs() { [ "$(tail -n 1 "$folder/rig.out")" = runs ]; }
while kill -0 "$gdb_pid" 2>/dev/null && ! grep -q interrupted "$folder/gdb.out"; do
    sleep 0.5
    runs || continue
    sleep 0.5
    runs || continue
    kill -INT "$gdb_pid" 2>/dev/null || break
    # A second one would meet it while it stops, or later.
    for _ in $(seq 100); do
        sleep 0.1
        runs || break
        grep -q interrupted "$folder/gdb.out" && break
        kill -0 "$gdb_pid" 2>/dev/null || break
    done
done
wait "$gdb_pid" || fail "gdb ended with status $?"
gdb_pid=''
expect() { grep -q -- "$1" "$folder/gdb.out" || fail "no '$1'"; }
expect 'inside Firmware::pass True'
expect 'awake 1 mtvec=0x8'
[ "$(grep -c 'instructions since power-on' "$folder/gdb.out")" = 2 ] || fail "no monitor command"
[ "$(grep 'instructions since power-on' "$folder/gdb.out" | sort -u | wc -l)" = 1 ] || fail "time went on while the core stood"
expect '^decision [0-9]* at '
expect '^queue  name'
expect 'stepped 1'
expect 'watched 1'
expect 'register 0x1234'
expect 'memory 0x5678'
expect '^0x4000000000:'
expect 'refused: Cannot access memory at address 0x10000000'
expect 'SIGINT'
expect 'interrupted 1'
exec 3>&-
wait "$rig_pid" || fail "the rig ended with status $?"
rig_pid=''
read -r _ rounds _ changes < <(grep ^rounds "$folder/rig.out")
[ "$rounds" -ge 3 ] || fail "only $rounds rounds of work"
[ "$changes" -ge 4 ] || fail "only $changes changes in the recording"
echo PASSED
