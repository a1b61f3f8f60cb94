#!/bin/sh
# lockstep.sh PROGRAM PLAYS: in a guest whose cards keep step. Each play of InStep.APlay is a process of its own, and all give the
# same model times, to the picosecond; but for the first, which finds code and tables that nobody has used.
program=$1
plays=$2
first=
for n in $(seq 0 "$plays"); do
    "$program" --gtest_filter=InStep.APlay > "/tmp/play$n" || { cat "/tmp/play$n"; exit 1; }
    times=$(grep '^times ' "/tmp/play$n") || { echo "no times in play $n" >&2; exit 1; }
    [ "$n" -gt 0 ] || continue
    [ -n "$first" ] || first=$times
    if [ "$times" != "$first" ]; then
        echo "play $n differs:" >&2
        echo "$first" >&2
        echo "$times" >&2
        exit 1
    fi
done
echo "$plays plays with the same times"
exec "$program" --gtest_filter=InStep.NothingIsLate
