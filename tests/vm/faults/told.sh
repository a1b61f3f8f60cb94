#!/bin/sh
# told.sh MESSAGE PROGRAM...: PROGRAM has to end with an error and say why, and the driver to say MESSAGE (-: nothing).
set -u
message=$1
shift
"$@" >/tmp/out 2>/tmp/err
status=$?
cat /tmp/out /tmp/err
[ $status = 1 ] || { echo "told.sh: status $status instead of 1" >&2; exit 1; }
[ -s /tmp/err ] || { echo "told.sh: no word of the cause" >&2; exit 1; }
[ "$message" = - ] || dmesg | grep -F -q "$message" || { dmesg | tail -n 20; echo "told.sh: the driver did not say '$message'" >&2; exit 1; }
