#!/bin/bash
# expect_status.sh STATUS COMMAND [ARGUMENT...]: succeeds if COMMAND ends with exactly STATUS.
set -uo pipefail
wanted=$1
shift
"$@"
status=$?
[ $status -eq "$wanted" ] && exit 0
echo "${0##*/}: status $status instead of $wanted: $*" >&2
exit 1
