#!/bin/bash
# record_death.sh REPLAY-TIMES ORRERY-VM FOLDER LOGS: kills the recorded card of a VM in the midst of its work. The
# recording is good up to what was in the file before, and says that it was not ended.
set -euo pipefail
replay=$1 vm=$2 folder=$3 logs=$4
file=$folder/card0.otrace
rm -rf "$folder" "$logs"
fail() { echo "FAILED: $*" >&2; exit 1; }
# `committed` of the header: bytes of the file that are complete.
committed() { od -A n -t u8 -j 184 -N 8 "$file" 2>/dev/null | tr -d ' '; }

"$vm" --cards 1 --timeout 240 --record "$folder" --logs "$logs" --allow-card-exit -- \
    sh -c 'while histogram >/dev/null; do echo again; done; echo gone' >"$folder.log" 2>&1 &
run=$!
# The card works when a second round begins; then the file has to grow, block by block.
last=0 growths=0
while [ $growths -lt 5 ]; do
    kill -0 $run 2>/dev/null || { cat "$folder.log" >&2; fail "the VM ended too early"; }
    now=$(committed || true)
    if grep -q again "$folder.log" && [ "${now:-0}" -gt "$last" ]; then
        last=$now growths=$((growths + 1))
    fi
    sleep 0.1
done
card=$(sed -n '/"cards"/,$ s/.*"pid": \([0-9]*\).*/\1/p' "$logs/run.json" | head -n 1)
kill -KILL "$card"
wait $run || { cat "$folder.log" >&2; fail "the guest did not live on"; }
grep -q gone "$folder.log" || fail "the guest did not see that its card is gone"
[ "$(committed)" -ge "$last" ] || fail "the recording has lost what it had"
"$replay" --crashed 10 "$file"
rm -rf "$folder" "$folder.log"
