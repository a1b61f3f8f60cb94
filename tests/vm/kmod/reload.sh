#!/bin/sh
# reload.sh ROUNDS CARDS: loads the driver, works, unloads it, and watches the kernel's memory while doing so.
set -u
. /tests/guest_functions.sh
rounds=$1
cards=$2

# Kilobytes that the kernel holds for itself; the caches that it may drop are dropped first.
kernel_memory() {
    sync
    echo 3 >/proc/sys/vm/drop_caches
    sleep 0.5
    awk '/^(SUnreclaim|VmallocUsed|KernelStack|PageTables):/ { sum += $2 } END { print sum }' /proc/meminfo
}

unload
# Caches of the kernel (slabs, lazily freed address ranges) fill by leaps, on 7.x for up to a hundred rounds; a leak
# grows evenly and for ever. So the memory is read after each fifth part of the rounds, and the least of the last three
# growths counts: a leak of one page a round shows in each of them as 4 kB * step. When all three look like one, the
# caches get up to twice the rounds more to fill, until the last five growths together are less than a leak's.
step=$((rounds / 5))
first=$((rounds - 3 * step))
leak=$((step * 3))
# The debug kernel keeps what was freed for a while, and names leaks itself.
[ ! -e /sys/kernel/debug/kmemleak ] || leak=1000000
growth() {
    echo "$points" | awk -v last=$(((rounds - first) / step)) '{
        for (i = 2; i <= NF && i <= last + 1; i++) if (i == 2 || $i - $(i - 1) < least) least = $i - $(i - 1)
        if (NF > 6) least = int(($NF - $(NF - 5)) / 5)
        print least }'
}
round=0
points=
while [ "$round" -lt "$rounds" ] || { [ "$(growth)" -ge $leak ] && [ "$round" -lt $((rounds * 3)) ]; }; do
    round=$((round + 1))
    load
    wait_for_nodes "$cards"
    kmod_work 2 || fail "work in round $round"
    unload
    if [ $round -ge $first ] && [ $(((round - first) % step)) = 0 ]; then
        points="$points $(kernel_memory)"
    fi
done
echo "kernel memory in kB after $first rounds, and then every $step:$points"
[ "$(growth)" -lt $leak ] || fail "the kernel holds $(growth) kB more after every $step rounds"
load
wait_for_nodes "$cards"
kmod_work || fail "work at the end"
