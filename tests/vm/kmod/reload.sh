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
# Caches of the kernel (slabs, lazily freed address ranges) still fill during the first rounds, and grow by leaps
# later, mostly on 7.x; a leak grows evenly. So the memory is read at four points, and the least of the three
# growths between them counts: a leak of one page a round shows in each of them as 4 kB * step.
step=$((rounds / 5))
first=$((rounds - 3 * step))
round=0
points=
while [ "$round" -lt "$rounds" ]; do
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
growth=$(echo "$points" | awk '{ for (i = 2; i <= NF; i++) print $i - $(i - 1) }' | sort -n | head -n 1)
# The debug kernel keeps what was freed for a while, and names leaks itself.
[ -e /sys/kernel/debug/kmemleak ] || [ "$growth" -lt $((step * 3)) ] || fail "the kernel holds $growth kB more after every $step rounds"
load
wait_for_nodes "$cards"
kmod_work || fail "work at the end"
