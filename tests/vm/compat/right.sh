#!/bin/bash
# right.sh LINE COMMAND...: the command prints a line that is all of the expression LINE, and exits with 0.
set -uo pipefail
line=$1
shift
said=$("$@" 2>&1 | tee /dev/stderr)
status=$?
[ $status = 0 ] || echo "exit status $status"
[ $status = 0 ] && grep -qxE -- "$line" <<< "${said//$'\r'/}"
