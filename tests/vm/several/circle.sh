#!/bin/bash
# circle.sh ORRERY_RUN LOGS VMS OPTIONS...: streams of so many VMs wait for each other in a circle, and each is told all of it.
set -uo pipefail
run=$1 logs=$2 vms=$3
shift 3
rm -rf "$logs"
mkdir -p "$logs/share"
"$run" -n "$vms" --vms "$vms" "$@" --memory 512M --timeout 240 --share "$logs/share" --logs "$logs/run" -- umd_circle >"$logs/out" 2>&1
status=$?
passed=$(grep -c 'circle [0-9]*: passed$' "$logs/out")
[ $status = 0 ] && [ "$passed" = "$vms" ] && exit
echo "circle.sh: status $status, $passed of $vms passed" >&2
cat "$logs/out" >&2
exit 1
