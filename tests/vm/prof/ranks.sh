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
# Of two VMs whose cards keep step: one timeline, with each rank's process of its own machine.
"$run" -n 2 --vms 2 --topology pair --sync lockstep --memory 512M --timeout 120 --logs "$folder/logs5" --profile "$folder/step.prof" -- \
    neighbours >"$folder/said" 2>&1 || fail "two VMs: status $?"
grep -qx "orrery-run: the profile of 2 ranks is in $folder/step.prof" "$folder/said" || fail "two VMs: no line"
"$prof" report "$folder/step.prof" >"$folder/report"
for line in '^machine 2: its host.s clock is known to [0-9.]* [mu]s by that of machine 1$' '^process [0-9]* of machine 1: neighbours$' \
    '^process [0-9]* of machine 2: neighbours$'; do
    [ "$(grep -c "$line" "$folder/report")" = 1 ] || fail "two VMs: no line $line: $(cat "$folder/report")"
done
[ "$(grep -Ec '^ +[0-9.]+ MiB copied to cards of other machines' "$folder/report")" = 2 ] || fail "two VMs: $(cat "$folder/report")"
# One uses no card: the others go on, and have their profile.
# shellcheck disable=SC2016 # the guest's
"$run" -n 2 --topology pair --memory 512M --timeout 120 --logs "$folder/logs3" --profile "$folder/one.prof" -- \
    sh -c '[ $ORR_RANK = 1 ] || exec vector_basics --quick' >"$folder/said" 2>&1 || fail "status $?"
grep -qx "orrery-run: the profile of 1 rank is in $folder/one.prof; there is none of rank 1" "$folder/said" || fail "no line"
"$prof" report "$folder/one.prof" >"$folder/report"
# What one has left cannot be read: the other's is there, and nothing is lost. Its recorder puts a whole file in place when it
# ends, so the damage comes behind that.
status=0
# shellcheck disable=SC2016 # the guest's
"$run" -n 2 --topology pair --memory 512M --timeout 120 --logs "$folder/logs4" --share "$folder/share" --profile "$folder/good.prof" -- \
    sh -c 'vector_basics --quick || exit; cd /share/*/ || exit
        if [ $ORR_RANK = 1 ]; then echo $PPID >recorder; exit; fi
        until [ -s recorder ]; do sleep 0.1; done
        while kill -0 "$(cat recorder)" 2>/dev/null; do sleep 0.1; done
        echo damaged >rank1.prof' >"$folder/said" 2>&1 || status=$?
[ $status != 0 ] || fail "a damaged profile is no failure"
grep -q "what rank 1 has left is damaged; what the ranks have left is kept in $folder/share/" "$folder/said" || fail "no line"
"$prof" report "$folder/good.prof" >"$folder/report"
[ -s "$(echo "$folder"/share/*/rank0.prof)" ] || fail "not kept"
# Nobody has anything to tell.
status=0
"$run" -n 1 --memory 512M --timeout 120 --logs "$folder/logs2" --profile "$folder/none.prof" -- true >"$folder/said" 2>&1 || status=$?
[ $status = 121 ] || fail "status $status"
grep -q 'nothing was recorded' "$folder/said" && grep -q 'no rank has left a profile' "$folder/said" || fail "no word of it"
! "$run" -n 1 --profile-with --counters -- true >"$folder/said" 2>&1 || fail "without --profile"
grep -q -- '--profile-with wants --profile FILE' "$folder/said" || fail "usage"
