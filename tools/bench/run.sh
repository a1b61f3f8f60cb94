#!/bin/bash
# run.sh: measures everything and writes build/bench.json. Expects that all is built (make bench sees to it). Exits with
# 1 if a goal does not hold. Wall-clock figures mean little on a busy machine: nothing else should run.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."
bin=build/release/bin
out=build/bench
mkdir -p "$out"
rm -f "$out"/*.json "$out"/*.txt

# seconds COMMAND...: its wall time
seconds() {
    local begin end
    begin=$(date +%s%N)
    "$@" > "$out/timed.log" 2>&1 || { cat "$out/timed.log" >&2; return 1; }
    end=$(date +%s%N)
    awk -v ns=$((end - begin)) 'BEGIN { printf "%.3f", ns / 1e9 }'
}

echo "==> card against NVMe, in a VM"
"$bin/orrery-vm" --nvme --timeout 300 -- orrery-bench > "$out/guest.json"
echo "==> interpreter against Unicorn"
"$bin/bench_core" --benchmark_filter='/10000000$' --benchmark_repetitions=5 --benchmark_format=json \
    > "$out/core.json" 2> "$out/core.log" || { cat "$out/core.log" >&2; exit 1; }
echo "==> copy engine against memcpy"
"$bin/bench_engines" --benchmark_filter='copy/bytes:67108864' --benchmark_repetitions=5 --benchmark_format=json \
    > "$out/engines.json" 2> "$out/engines.log" || { cat "$out/engines.log" >&2; exit 1; }
echo "==> make run, and boot to the first result"
run=$(seconds make --no-print-directory run)
first=$(seconds "$bin/orrery-vm" --cards 2 -- histogram)
echo "==> failures, told to who waits"
# Their goals are judged in the table.
"$bin/orrery-vm" --timeout 300 -- bench_failure > "$out/failure.json" || [ -s "$out/failure.json" ]
"$bin/orrery-vm" --timeout 300 --cards 2 --faults '1:link count=all fail' -- bench_failure --links \
    > "$out/links.json" || [ -s "$out/links.json" ]
# A card dies once only.
for _ in 1 2; do
    "$bin/orrery-vm" --timeout 300 --cards 16 --memory 2G --allow-card-exit --faults 'dispatch first=1 die' -- \
        bench_failure --cards || true # the next line counts
done > "$out/deaths.txt"
"$bin/bench_failure" --times 32 < "$out/deaths.txt" > "$out/cards.json" || [ -s "$out/cards.json" ]
echo "==> recording the control core, and stepping recordings"
# Their goals are judged in the table.
"$bin/bench_trace" 10 "$out/trace.json" || [ -s "$out/trace.json" ]
"$bin/bench_step" "$out/step.json" || [ -s "$out/step.json" ]
"$bin/orrery-bench-report" "$out/guest.json" "$out/core.json" "$out/engines.json" "$run" "$first" build/bench.json \
    "$out/failure.json" "$out/links.json" "$out/cards.json" "$out/trace.json" "$out/step.json"
