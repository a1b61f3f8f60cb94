#!/bin/bash
# worked.sh ORRERY_VM ORRERY_RUN ORRERY_PROF FOLDER: the cases of docs/profiling-cases.md: each is limited by what the page says,
# and mended it takes less. The profiles stay in FOLDER.
set -euo pipefail
vm=$1 run=$2 prof=$3 folder=$4
rm -rf "$folder"
mkdir -p "$folder"
# shellcheck disable=SC2016 # the guest's
"$vm" --share "$folder" --logs "$folder/logs" -- sh -ec 'for case in host memory; do
        orrery-prof record --counters -o /share/$case.prof -- worked $case
        orrery-prof record --counters -o /share/$case-mended.prof -- worked $case --mended
    done'
for mended in '' --mended; do
    # shellcheck disable=SC2016 # the guest's
    "$run" -n 4 --topology ring --sync lockstep --share "$folder" --logs "$folder/logs-rank$mended" -- sh -c \
        'exec orrery-prof record --counters -o /share/part$ORR_RANK.prof -- worked rank '"$mended"
    "$prof" merge "$folder"/part?.prof -o "$folder/rank${mended#-}.prof"
done
for case in host memory rank; do
    "$prof" explain "$folder/$case.prof" >"$folder/$case.explain"
    "$prof" compare "$folder/$case.prof" "$folder/$case-mended.prof" >"$folder/$case.compare"
    "$prof" report "$folder/$case.prof" >"$folder/$case.report"
    "$prof" html "$folder/$case.prof" -o "$folder/$case.html"
done
grep -Eq '^ +[0-9]+ %  the host$' "$folder/host.explain"
grep -Eq '^    nothing ran .* -[0-9.]+ %$' "$folder/host.compare"
grep -Eq '^ +[0-9]+ %  VRAM bandwidth$' "$folder/memory.explain"
grep -Eq '^    kernels ran .* -57\.[0-9] %$' "$folder/memory.compare"
# Three wait, mostly for the fourth: how long each waits before the first round is the hosts' matter.
[ "$(grep -Ec '^ +[0-9]+ %  waiting for rank [0-3]$' "$folder/rank.explain")" -ge 3 ]
if grep -q 'waiting for the barrier' "$folder/rank.explain"; then exit 1; fi
[ "$(grep -Ec '^  last at its barriers in streams:.* rank 3 \([3-6]\)' "$folder/rank.report")" = 4 ]
sed '1,/^  device 3, first/d' "$folder/rank.compare" | grep -m1 -Eq '^    kernels ran .* -60\.[0-9] %$'
