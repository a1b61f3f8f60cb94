#!/bin/sh
# count.sh COUNT_TOLD WHAT [HOW...]: instructions for each, by thread of the process, under valgrind.
# The threads are the program's own, the card's (a fake one) and the library's that tells records.
set -eu
program=$1 what=$2
shift 2
[ $# -gt 0 ] || set -- plain subscribed counters recorded recorded+counters
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
strip -g -o "$folder/program" "$program"
few=2000 many=6000
for how in "$@"; do
    for launches in $few $many; do
        valgrind --tool=callgrind --separate-threads=yes --callgrind-out-file="$folder/out.$how.$launches" \
            "$folder/program" "$what" "$how" "$launches" 2>"$folder/log" || {
            cat "$folder/log"
            exit 1
        }
    done
    for thread in "$folder/out.$how.$many"-*; do
        number=${thread##*-}
        more=$(sed -n 's/^totals: //p' "$thread")
        less=$(sed -n 's/^totals: //p' "$folder/out.$how.$few-$number")
        echo "$how thread $number $(((more - less) / (many - few)))"
    done
done
