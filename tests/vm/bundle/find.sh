#!/bin/bash
# find.sh ORRERY-VM ORRERY-STEP FOLDER CASE...: makes a run fail in each of these ways, and finds what failed from its
# bundle alone: logs and all else of the run are gone by then.
set -euo pipefail
vm=$(realpath "$1") step=$(realpath "$2") folder=$3
shift 3

# name | cards | kind | card (-: none) | part of the cause | options | command
cases() {
    cat << 'END'
killed|2|card-died|1|was killed by signal 9|--faults;1:dispatch first=5 die|histogram --cards 2
silent|1|firmware-silent|0|did not answer the driver|--module-params;mailbox_timeout_ms=500;--faults;mailbox first=40 count=all drop|kmod_work 50
bad-descriptor|1|queue-error bad desc|0|BAD_DESC at packet|--faults;dispatch port=2 first=2 fail|histogram
dma-abort|1|queue-error fault|0|neither card memory nor mapped for DMA|--faults;dma-read first=300 count=all fail|histogram
not-mapped|1|queue-error fault|0|not mapped|--faults;walk first=4 count=all fail|histogram
panic|1|kernel-report|-|sysrq triggered crash||echo c > /proc/sysrq-trigger
page-fault|1|queue-error fault|0|address 0x0,||umd_vm_test --gtest_filter=BadKernel.StoreToNull
trap|1|queue-error kernel trap|0|KERNEL_TRAP at packet||umd_vm_test --gtest_filter=BadKernel.Trap
endless|1|queue-error timeout|0|TIMEOUT at packet||umd_vm_test --gtest_filter=BadKernel.EndlessLoop
wait-limit|1|queue-error wait limit|0|WAIT_LIMIT at packet||kmod_test --gtest_filter=Abort.AWaitComesToItsLimitOnAnIdleCard
bad-packet|1|queue-error bad opcode|0|BAD_OPCODE at packet||kmod_test --gtest_filter=Work.BadPacketsAndIndicesStopTheQueue
link-down|2|queue-error fault|0|the link is down||umd_vm_test --gtest_filter=*LinkDown*
deadlock|1|deadlock|0|waits for||sched_vm_test --gtest_filter=Deadlock.OfAStreamWithItself
hang|1|firmware-silent|0|did not answer the driver|--faults;dispatch first=3 hang|histogram
END
}

value() { sed -n "s/^$1: //p" "$folder/$name/where"; }
complain() {
    echo "find.sh: $name: $*" >&2
    tail -n 8 "$folder/$name/where" "$folder/$name/said" | sed 's/^/    /' >&2
    failed=1
}

failed=0
for name in "$@"; do
    line=$(cases | grep "^$name|") || { echo "find.sh: there is no case '$name'" >&2; exit 2; }
    IFS='|' read -r _ cards kind card cause options command <<< "$line"
    IFS=';' read -r -a options <<< "$options" # may be none
    rm -rf "${folder:?}/$name"
    mkdir -p "$folder/$name"
    "$vm" --cards "$cards" --timeout 120 --logs "$folder/$name/logs" --report "$folder/$name/bundle" "${options[@]}" \
        -- sh -c "$command" > "$folder/$name/said" 2>&1 < /dev/null || true
    rm -rf "$folder/$name/logs"
    (cd "$folder/$name" && "$step" bundle bundle --where) > "$folder/$name/where" 2>&1 || complain "it does not open"
    [ "$(value kind)" = "$kind" ] || complain "the kind is '$(value kind)', not '$kind'"
    [ "$(value card)" = "${card#-}" ] || complain "the card is '$(value card)', not '$card'"
    [[ "$(value cause)" == *"$cause"* ]] || complain "the cause does not say '$cause'"
    # It stands there, and what it stands on replays.
    (cd "$folder/$name" && "$step" bundle bundle -c print\ \$pc -c verify) > "$folder/$name/moment" 2>&1 ||
        complain "the moment cannot be looked at: $(tail -n 2 "$folder/$name/moment")"
    echo "$name: $(value kind): $(value cause)"
done
exit $failed
