#!/bin/bash
# gdb on a recording from elsewhere: functions, lines and variables come with it, and gdb needs no file.
#   recording.sh ORRERY-STEP SCENARIO FIRMWARE-ELF
set -euo pipefail
program=$1 scenario=$2 firmware=$3
# shellcheck source=tests/system/gdb/served.sh
. "${BASH_SOURCE[0]%/*}/served.sh"

"$program" run "$scenario" -o "$folder/run.otrace" > "$folder/run.out"
# Nothing of the build is in reach: neither as a file of gdb's nor beside the program.
mkdir "$folder/elsewhere"
cp "$program" "$folder/elsewhere/orrery-step"
cd "$folder"

serve elsewhere/orrery-step run.otrace
cat > script <<END
set pagination off
set remotetimeout 60
set width 0
target remote :$port
break orrery::fw::Firmware::pass()
continue
backtrace
info line
info args
info symbol orr_main
monitor list
kill
END
gdb-multiarch -nx -batch -x script > gdb.out 2>&1 || fail "gdb ended with status $?"
expect() { grep -Eq -- "$1" gdb.out || fail "no '$1'"; }
expect 'Reading symbols from target:/orrery-fw.elf'
expect '^#0 .*Firmware::pass \(this=0x8.*\) at .*firmware/main/firmware\.cc:[0-9]+'
expect '^#[0-9]+ .*orr_main \(\) at .*firmware/main/main\.cc:[0-9]+'
expect '^Line [0-9]+ of ".*firmware/main/firmware\.cc"'
expect '^this = 0x8'
expect '^orr_main in section \.text'
# gdb has no way to the sources; orrery-step has them.
expect 'bool Firmware::pass\(\) \{'
end

# What comes over the connection has no link to another file, though the ELF has one.
LC_ALL=C sed 's/\.debug_aranges/.gnu_debuglink/' "$firmware" > linked.elf
grep -q gnu_debuglink linked.elf || fail "the firmware has no such section to rename"
serve elsewhere/orrery-step run.otrace --elf linked.elf
gdb-multiarch -nx -batch -ex 'set remotetimeout 60' -ex "target remote :$port" -ex 'remote get /orrery-fw.elf got.elf' -ex kill \
    > gdb.out 2>&1 || fail "gdb ended with status $?"
end
grep -q debug_info got.elf || fail "gdb did not get the ELF"
! grep -q gnu_debuglink got.elf || fail "gdb was given a link to another file"
echo PASSED
