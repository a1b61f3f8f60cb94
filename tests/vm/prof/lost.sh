#!/bin/bash
# lost.sh ORRERY_RUN ORRERY_PROF ORRERY_STEP FOLDER: a VM that is lost leaves what its rank had done, in the profile and in the bundle.
set -euo pipefail
run=$1 prof=$2 step=$3 folder=$4
rm -rf "${folder:?}"
mkdir -p "$folder/share"
fail() {
    echo "lost.sh: $*" >&2
    cat "$folder/said" >&2
    exit 1
}
# shellcheck disable=SC2016 # the guest's
"$run" -n 1 --memory 512M --timeout 100 --logs "$folder/logs" --share "$folder/share" --report "$folder/report.tar" \
    --profile "$folder/all.prof" -- sh -c 'while vector_basics --quick >/dev/null; do :; done' >"$folder/said" 2>&1 &
all=$!
trap 'kill "$all" 2>/dev/null || :' EXIT
# It goes on for ever: two programs have come to their ends.
until "$prof" stat "$folder"/share/*/rank0.prof >"$folder/stat" 2>&1 && [ "$(grep -c '^process [0-9]*: vector_basics' "$folder/stat")" -ge 2 ]; do
    kill -0 $all 2>/dev/null || fail "it has ended"
    sleep 0.1
done
qemu=$(sed -n 's/.*"qemu": \([0-9]*\).*/\1/p' "$folder/logs/run.json")
[ -n "$qemu" ] || fail "no QEMU is named"
kill -KILL "$qemu"
wait $all && fail "a VM that is lost is no failure"
grep -q "the profile of 1 rank is in $folder/all.prof" "$folder/said" || fail "no line"
"$step" bundle "$folder/report.tar" --extract "$folder/bundle" >>"$folder/said" 2>&1
for file in "$folder/all.prof" "$folder/bundle/rank0.prof"; do
    "$prof" stat "$file" >"$folder/stat" || fail "$file cannot be read"
    [ "$(grep -c '^process [0-9]*: vector_basics' "$folder/stat")" -ge 2 ] || fail "$file: $(cat "$folder/stat")"
done
[ -z "$(ls "$folder/share")" ] || fail "left behind: $(ls "$folder/share")"
