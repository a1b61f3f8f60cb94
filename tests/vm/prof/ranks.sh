#!/bin/bash
# ranks.sh ORRERY_RUN ORRERY_PROF ORRERY_STEP FOLDER: one profile of all ranks, also when one fails; and in the bundle.
set -euo pipefail
run=$1 prof=$2 step=$3 folder=$4
rm -rf "${folder:?}"
mkdir -p "$folder/share"
fail() {
    echo "ranks.sh: $*" >&2
    cat "$folder/said" >&2
    exit 1
}
status=0
# shellcheck disable=SC2016 # the guest's
"$run" -n 2 --topology pair --memory 512M --timeout 120 --logs "$folder/logs" --share "$folder/share" --report "$folder/report.tar" \
    --profile "$folder/all.prof" --profile-with '--counters --samples 20' -- \
    sh -c 'neighbours || exit; [ $ORR_RANK = 0 ] && exit; echo late >&2; exit 7' >"$folder/said" 2>&1 || status=$?
[ $status = 7 ] || fail "status $status"
grep -qx "orrery-run: the profile of 2 ranks is in $folder/all.prof" "$folder/said" || fail "no line"
"$prof" report "$folder/all.prof" >"$folder/report"
[ "$(grep -c '^process [0-9]*: neighbours$' "$folder/report")" = 2 ] || fail "$(cat "$folder/report")"
"$prof" export "$folder/all.prof" --csv "$folder/tables"
[ "$(tail -n +2 "$folder/tables/work_counters.csv" | wc -l)" -gt 20 ] && [ "$(tail -n +2 "$folder/tables/sample.csv" | wc -l)" -gt 20 ] ||
    fail "counters and samples"
# What the ranks left went along, and nothing of it stays.
"$step" bundle "$folder/report.tar" --extract "$folder/bundle" >>"$folder/said" 2>&1
for rank in 0 1; do
    "$prof" stat "$folder/bundle/rank$rank.prof" >"$folder/stat"
    grep -q '^  orrGroupJoin' "$folder/stat" || fail "rank $rank's in the bundle"
done
[ -z "$(ls "$folder/share")" ] || fail "left behind: $(ls "$folder/share")"
# Nobody has anything to tell.
status=0
"$run" -n 1 --memory 512M --timeout 120 --logs "$folder/logs2" --profile "$folder/none.prof" -- true >"$folder/said" 2>&1 || status=$?
[ $status = 1 ] || fail "status $status"
grep -q 'nothing was recorded' "$folder/said" || fail "no word of it"
! "$run" -n 1 --profile-with --counters -- true >"$folder/said" 2>&1 || fail "without --profile"
grep -q -- '--profile-with wants --profile FILE' "$folder/said" || fail "usage"
