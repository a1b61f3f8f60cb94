#!/bin/bash
# find.sh ORRERY-VM ORRERY-STEP FOLDER CASE...: makes a run fail in each of these ways, and finds what failed from its
# bundle alone: logs and all else of the run are gone by then.
set -euo pipefail
vm=$(realpath "$1") step=$(realpath "$2") folder=$3
source=$(dirname "$(realpath "$0")")/../../..
shift 3

# name | cards | kind | card (-: none) | part of the cause | options | command
cases() {
    cat << 'END'
killed|2|card-died|1|was killed by signal 9|--topology;pair;--faults;1:seed 7\ndispatch first=5 die|uname -r && histogram --cards 2
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
    # Either may not be there yet.
    { tail -n 8 "$folder/$name/where" "$folder/$name/said" 2>&1 || true; } | sed 's/^/    /' >&2
    failed=1
}

# What the run was: versions, SKU, links, plan and seed as orrery-vm was told or as others say of them, and the guest's log
# byte by byte.
holds_the_run() {
    local all=$folder/$name/all manifest kernel version
    "$step" bundle "$folder/$name/bundle" --extract "$all" > /dev/null 2>&1 || complain "it does not unpack"
    manifest=$(tr -d '\n' < "$all/orrery-bundle.json" | tr -s ' ' | sed 's/\([][{,:]\) /\1/g; s/ \([]}]\)/\1/g') ||
        complain "it has no manifest"
    kernel=$(tr -d '\r' < "$folder/$name/said" | grep -m 1 '^[0-9]*\.[0-9]*\.[0-9]' || true) # uname
    version=$(sed -n 's/^project(orrery VERSION \([^ ]*\) .*/\1/p' "$source/CMakeLists.txt")
    [ -n "$kernel" ] && [ -n "$version" ] || complain "no version of the kernel or of orrery to compare with"
    (cd "$folder/$name" && "$step" bundle bundle -c 'card 1' -c info) > "$folder/$name/info" 2>&1 ||
        complain "what the run was cannot be shown: $(tail -n 2 "$folder/$name/info")"
    for want in "\"versions\":{\"orrery\":\"$version\",\"hardware\":\"[0-9]*\.[0-9]*\",\"recordings\":\"[0-9]*\.[0-9]*\",\"kernel\":\"$kernel\"}" \
        '"sku":"orrery-1"' '"topology":{"named":"pair","links":\[\[0,0,1,0\]\]}' '"sync":"free"' \
        '"index":1,"died":"[^"]*","faults":"seed 7\\ndispatch first=5 die","recording":"card1.otrace"' '"missing":\[\]'; do
        grep -q "$want" <<< "$manifest" || complain "its manifest has no $want"
    done
    cmp "$all/guest.log" "$folder/$name/guest.log" || complain "its guest.log is another one"
    for want in '^topology   pair: card 0 port 0 to card 1 port 0$' '^sync       free$' '^SKU        orrery-1$' \
        "^versions   orrery $version, hardware [0-9.]*, kernel $kernel$" '^faults     card 1: seed 7; dispatch first=5 die$' \
        '^seed       card 1: 7$' '^card       .*, seed 7$' '^faults     seed 7; dispatch first=5 die$'; do
        grep -q "$want" "$folder/$name/info" || complain "it does not say $want"
    done
}

failed=0
for name in "$@"; do
    line=$(cases | grep "^$name|") || { echo "find.sh: there is no case '$name'" >&2; exit 2; }
    IFS='|' read -r _ cards kind card cause options command <<< "$line"
    IFS=';' read -r -a options <<< "$options" # may be none
    options=("${options[@]//\\n/$'\n'}")
    rm -rf "${folder:?}/$name"
    mkdir -p "$folder/$name"
    "$vm" --cards "$cards" --timeout 120 --logs "$folder/$name/logs" --report "$folder/$name/bundle" "${options[@]}" \
        -- sh -c "$command" > "$folder/$name/said" 2>&1 < /dev/null || true
    mv "$folder/$name/logs/guest.log" "$folder/$name/guest.log" || complain "there is no guest.log"
    rm -rf "$folder/$name/logs"
    (cd "$folder/$name" && "$step" bundle bundle --where) > "$folder/$name/where" 2>&1 || complain "it does not open"
    [ "$(value kind)" = "$kind" ] || complain "the kind is '$(value kind)', not '$kind'"
    [ "$(value card)" = "${card#-}" ] || complain "the card is '$(value card)', not '$card'"
    [[ "$(value cause)" == *"$cause"* ]] || complain "the cause does not say '$cause'"
    # It stands there, and what it stands on replays.
    (cd "$folder/$name" && "$step" bundle bundle -c print\ \$pc -c verify) > "$folder/$name/moment" 2>&1 ||
        complain "the moment cannot be looked at: $(tail -n 2 "$folder/$name/moment")"
    [ "$name" != killed ] || holds_the_run
    echo "$name: $(value kind): $(value cause)"
done
exit $failed
