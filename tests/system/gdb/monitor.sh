#!/bin/bash
# What gdb's "monitor" says of a recording's scheduler.
#   monitor.sh ORRERY-STEP RECORDING
set -euo pipefail
program=$1 recording=$2
# shellcheck source=tests/system/gdb/served.sh
. "${BASH_SOURCE[0]%/*}/served.sh"

serve "$program" "$recording"
cat > "$folder/script" <<END
set pagination off
set remotetimeout 60
set architecture riscv:rv64
target remote 127.0.0.1:$port
monitor why
monitor time 1110413000
maintenance flush register-cache
printf "here %#lx\n", \$pc
monitor why
printf "there %#lx\n", \$pc
monitor queues
monitor time 1012000000
monitor waits
monitor quit
kill
END
gdb-multiarch -nx -batch -x "$folder/script" > "$folder/gdb.out" 2>&1 || fail "gdb ended with status $?"
expect() { grep -q -- "$1" "$folder/gdb.out" || fail "no '$1'"; }
expect 'no decision has been taken at this position'
expect '^rule '
expect '=> .* chosen'
expect '"train"  semaphore 0 >= 1'
expect '^queue  name'
expect 'why | queues | waits'
# Looking moves nothing.
[ "$(sed -n 's/^here //p' "$folder/gdb.out")" = "$(sed -n 's/^there //p' "$folder/gdb.out")" ] || fail "the position changed"
end
echo PASSED
