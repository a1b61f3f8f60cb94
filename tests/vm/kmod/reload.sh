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

pages_in_use() {
    awk '/^MemTotal:/ { total = $2 } /^MemFree:/ { free = $2 } END { print total - free }' /proc/meminfo
}

unload
# Caches of the kernel (slabs, lazily freed address ranges) still fill during the first rounds, mostly on 7.x.
warm=40
round=0
while [ "$round" -lt "$rounds" ]; do
    round=$((round + 1))
    load
    wait_for_nodes "$cards"
    kmod_work 2 || fail "work in round $round"
    unload
    if [ $round = $warm ]; then
        before=$(kernel_memory)
        used_before=$(pages_in_use)
    fi
done
after=$(kernel_memory)
used_after=$(pages_in_use)
echo "kernel memory: $before kB after $warm rounds, $after kB after $rounds; in use: $used_before kB, $used_after kB"
# A leak of one page a round would show as 4 kB * (rounds - warm).
limit=$(((rounds - warm) * 3))
[ $((after - before)) -lt $limit ] || fail "the kernel holds $((after - before)) kB more than after $warm rounds"
load
wait_for_nodes "$cards"
kmod_work || fail "work at the end"
