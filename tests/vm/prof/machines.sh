#!/bin/bash
# machines.sh ORRERY_RUN ORRERY_PROF FOLDER PROTOC: profiles of two VMs whose cards keep step, on one timeline; and of two whose
# cards do not. How far the guests' clocks are apart is known by files that they make on the host.
set -euo pipefail
run=$1 prof=$2 folder=$3 protoc=$4
rm -rf "$folder"
ranks() {
    mkdir -p "$folder/$1"
    # shellcheck disable=SC2016 # the guest's
    "$run" -n 4 --vms 2 --topology ring --sync "$1" --memory 512M --timeout 120 --logs "$folder/logs-$1" --share "$folder/$1" -- sh -c '
        read -r before rest </proc/uptime; : >/share/mark$ORR_RANK; read -r after rest </proc/uptime
        echo "$before $after" >/share/up$ORR_RANK
        exec orrery-prof record -o /share/r$ORR_RANK.prof -- neighbours'
    "$prof" merge "$folder/$1"/r?.prof -o "$folder/$1/all.prof"
}
ranks lockstep
"$prof" report "$folder/lockstep/all.prof" --json >"$folder/report.json"
number() { sed -n "s/.*\"$1\": \(-\?[0-9]*\).*/\1/p" "$folder/report.json" | head -1; }
ahead=$(number ahead_ns) error=$(number error_ns)
# Machine 1 is the one that began first by its own clock.
begun() {
    local rank
    for rank in "$@"; do
        "$prof" export "$folder/lockstep/r$rank.prof" --csv "$folder/tables"
        sed -n 2p "$folder/tables/process.csv" | cut -d, -f5
    done | sort -n | head -1
}
if [ "$(begun 0 1)" -lt "$(begun 2 3)" ]; then one=0 two=2; else one=2 two=0; fi
of() { awk -v mark="$(stat -c %.9Y "$folder/lockstep/mark$1")" '{ printf "%.3f %.3f\n", ($1 - 0.011 - mark) * 1000, ($2 + 0.011 - mark) * 1000 }' "$folder/lockstep/up$1"; }
paste -d' ' <(of $one) <(of $two) | awk -v ahead="$ahead" -v error="$error" '
    { low = $3 - $2; high = $4 - $1; a = (ahead - error) / 1e6; b = (ahead + error) / 1e6
      printf "machine 2 is %.1f to %.1f ms ahead by the files, and %.1f to %.1f ms by the cards\n", low, high, a, b
      exit !(a <= high && b >= low) }'
"$prof" report "$folder/lockstep/all.prof" >"$folder/report"
grep -q '^machine 2: its host.s clock is known to ' "$folder/report"
[ "$(grep -c '^process [0-9]* of machine [12]: neighbours$' "$folder/report")" = 4 ]
[ "$(grep -c '^    clock: by the host.s to ' "$folder/report")" = 4 ]
# A ring of two machines with two cards each: one rank of each copies to its neighbour's process, one to the other machine.
[ "$(grep -Ec '^    port [0-9]+ +device [01] .* 3\.0 MiB ' "$folder/report")" = 4 ]
[ "$(grep -c '^    3.0 MiB copied to cards of other machines' "$folder/report")" = 2 ]
"$prof" trace "$folder/lockstep/all.prof" -o "$folder/trace.json"
grep -q 'of machine 2, the host.s time to ' "$folder/trace.json"
# Perfetto knows processes by their numbers: those of both machines differ. Each work is a stage of its card, which is
# one of four; decoded without the messages that it was written with.
"$prof" trace "$folder/lockstep/all.prof" --perfetto -o "$folder/trace.pb"
"$protoc" --decode_raw <"$folder/trace.pb" >"$folder/trace.txt"
[ "$(awk '/^  60 [{]$/ { track = 1 } /^  }$/ { track = 0 } track && /^    3 [{]$/ { getline; print $2 }' "$folder/trace.txt" | sort -u | wc -l)" = 4 ]
"$prof" export "$folder/lockstep/all.prof" --csv "$folder/tables"
[ "$(grep -c '^  53 {$' "$folder/trace.txt")" = $(($(wc -l <"$folder/tables/work.csv") - 1)) ]
[ "$(awk '/^  53 [{]$/ { stage = 1 } /^  }$/ { stage = 0 } stage && /^    11: / { print $2 }' "$folder/trace.txt" | sort -u | wc -l)" = 4 ]
"$prof" html "$folder/lockstep/all.prof" -o "$folder/page.html"
ranks free
"$prof" stat "$folder/free/all.prof" >"$folder/stat"
grep -q '^machine 2: nothing says how its host.s clock is to that of machine 1' "$folder/stat"
