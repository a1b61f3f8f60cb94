#!/bin/sh
# trace.sh: what the driver's tracepoints tell of a process's work, of a kernel that is wrong, of a card that goes.
set -u
. /tests/guest_functions.sh
tracing=/sys/kernel/tracing
[ -e $tracing/trace ] || mount -t tracefs none $tracing || fail "no tracefs"
[ "$(ls -d $tracing/events/orrery/orr_* | wc -l)" -ge 10 ] || fail "events: $(ls $tracing/events/orrery)"
echo 1 >$tracing/events/orrery/enable || fail "events/orrery/enable"
kmod_work || fail "kmod_work: status $?"
cp $tracing/trace /tmp/work
# Each command is answered once, by its number; what was asked before somebody looked may be answered then.
awk '
    function field(name) { match($0, name "=[^ ]*"); return substr($0, RSTART + length(name) + 1, RLENGTH - length(name) - 1) }
    / orr_command: / { if (!(field("card") in first)) first[field("card")] = field("sequence"); asked[field("card") " " field("sequence")]++; commands++ }
    / orr_reply: /   { if (!(field("card") in first) || field("sequence") + 0 < first[field("card")] + 0) next; if (!((field("card") " " field("sequence")) in asked)) wrong = wrong " reply:" $0; replies++; if (answered[field("card") " " field("sequence")]++) wrong = wrong " twice:" $0; if (field("status") != 0) wrong = wrong " status:" $0 }
    / orr_queue_create: /  { made[field("card") " " field("queue")]++; queues++ }
    / orr_queue_destroy: / { if (made[field("card") " " field("queue")]-- < 1) wrong = wrong " destroy:" $0; ended++ }
    / orr_map: / { maps++ }
    / orr_interrupt: / { interrupts++ }
    END {
        if (queues == 0 || queues != ended || maps == 0 || interrupts == 0 || replies == 0 || commands < replies) wrong = wrong " counts"
        if (wrong != "") { print wrong; print commands + 0, replies + 0, queues + 0, ended + 0, maps + 0, interrupts + 0; exit 1 }
    }' /tmp/work >/tmp/wrong || fail "$(cat /tmp/wrong /tmp/work)"

echo >$tracing/trace
kmod_test --gtest_filter=Work.AFaultStopsOnlyItsQueue:Conformance.VmBind >/tmp/out || fail "$(cat /tmp/out)"
grep -q 'orr_queue_stopped: card=[0-9]* queue=[0-9]* error=[1-9]' $tracing/trace || fail "orr_queue_stopped: $(cat $tracing/trace)"
for event in orr_map orr_unmap; do
    grep -q "$event: card=0 " $tracing/trace || fail "$event: $(cat $tracing/trace)"
done

echo >$tracing/trace
second=$(ls -d /sys/bus/pci/drivers/orrery/0000:* | tail -n 1)
echo "${second##*/}" >/sys/bus/pci/drivers/orrery/unbind || fail "unbind"
grep -q "orr_lost: card=[0-9]* reason='the driver is unbound'" $tracing/trace || fail "orr_lost: $(cat $tracing/trace)"
echo "${second##*/}" >/sys/bus/pci/drivers/orrery/bind || fail "bind"
for try in $(seq 600); do
    grep -q 'orr_link: card=1 port=[0-9]* ' $tracing/trace && break
    [ "$try" -lt 600 ] || fail "orr_link: $(cat $tracing/trace)"
    sleep 0.1
done
