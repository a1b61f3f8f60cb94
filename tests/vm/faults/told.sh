#!/bin/sh
# told.sh MESSAGE CAUSE PROGRAM...: PROGRAM has to end with an error and say CAUSE, a regular expression for a line of its
# standard error, and the driver to say MESSAGE (-: nothing).
set -u
message=$1 cause=$2
shift 2
"$@" >/tmp/out 2>/tmp/err
status=$?
cat /tmp/out /tmp/err
[ $status = 1 ] || { echo "told.sh: status $status instead of 1" >&2; exit 1; }
grep -Eqx -- "$cause" /tmp/err || { echo "told.sh: no line '$cause' in what it says" >&2; exit 1; }
[ "$message" = - ] || dmesg | grep -F -q "$message" || { dmesg | tail -n 20; echo "told.sh: the driver did not say '$message'" >&2; exit 1; }
