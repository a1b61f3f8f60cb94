#!/bin/bash
# nothing_late.sh LOGS COMMAND...: COMMAND is a run of cards that keep step, which puts its logs there. It ends as that
# does, but with 98 if a card or switch says at its end that a message came after its model time, or does not say it.
set -uo pipefail
logs=$1
shift
rm -rf "$logs"
"$@"
status=$?
count=0 messages=0
while IFS= read -r log; do
    count=$((count + 1))
    said=$(sed -n 's/.*it ends: \([0-9]* of [0-9]*\) messages over its links came after their model time$/\1/p' "$log")
    messages=$((messages + ${said:+${said#* of }}))
    case $said in
    "0 of "*) ;;
    "") echo "${0##*/}: $log does not say how many messages came late" >&2 && status=98 ;;
    *) echo "${0##*/}: $log: $said messages came late" >&2 && status=98 ;;
    esac
done < <(find "$logs" \( -name 'card*.log' -o -name 'switch*.log' \) | sort)
# One card alone has nobody to keep step with, and where nothing is sent nothing is late.
[ $count -ge 2 ] && [ $messages -gt 0 ] ||
    { echo "${0##*/}: $messages messages came to $count cards and switches, by their logs in $logs" >&2 && status=98; }
exit $status
