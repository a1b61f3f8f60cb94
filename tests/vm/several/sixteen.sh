#!/bin/bash
# sixteen.sh ORRERY_RUN LOGS TOPOLOGY: a group of sixteen members, each with a card, in four VMs: it meets, and is told of
# one that is killed. All processes together, with what they share counted for each, stay within 16 GiB.
set -uo pipefail
run=$1 logs=$2 topology=$3
fail() {
    echo "sixteen.sh: $*" >&2
    cat "$logs/out" >&2
    exit 1
}
rm -rf "$logs"
mkdir -p "$logs/share"
# Of a process and all below it, in KiB: what they have in memory, and the same with what is shared counted once.
rss=0 pss=0 processes=0
measure() {
    local pid file
    for pid in "$@"; do
        file=/proc/$pid/smaps_rollup
        read -r one other < <(awk '/^Rss:/ {r = $2} /^Pss:/ {p = $2} END {print r + 0, p + 0}' "$file" 2>/dev/null)
        rss=$((rss + ${one:-0})) pss=$((pss + ${other:-0})) processes=$((processes + 1))
        # shellcheck disable=SC2046 # numbers
        measure $(cat "/proc/$pid/task/"*/children 2>/dev/null)
    done
}
began=$SECONDS
"$run" -n 16 --vms 4 --topology "$topology" --memory 512M --timeout 800 --share "$logs/share" --logs "$logs/run" -- \
    umd_group_vms meet killed-host >"$logs/out" 2>&1 &
running=$!
most_rss=0 most_pss=0 most_processes=0
while kill -0 $running 2>/dev/null; do
    rss=0 pss=0 processes=0
    measure $running
    [ $rss -gt $most_rss ] && most_rss=$rss
    [ $pss -gt $most_pss ] && most_pss=$pss
    [ $processes -gt $most_processes ] && most_processes=$processes
    sleep 1
done
wait $running
status=$?
[ $status = 0 ] || fail "status $status"
echo "$topology: $most_processes processes, $((most_rss / 1024)) MiB, $((most_pss / 1024)) MiB with what they share counted" \
    "once, $((SECONDS - began)) s"
[ "$(grep -cE '^[0-9]+: killed-host: orrErrorAborted of rank 15: ' "$logs/out")" = 15 ] || fail "not all were told of rank 15"
# Four QEMUs and sixteen cards at least have been looked at.
[ $most_processes -ge 20 ] || fail "$most_processes processes were seen"
[ $most_rss -le $((16 * 1024 * 1024)) ] || fail "$most_rss KiB of memory"
