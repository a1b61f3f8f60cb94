#!/bin/sh
# perf.sh: the driver's counters and tracepoints through the perf and trace-cmd of this kernel.
set -u
. /tests/guest_functions.sh
perf --version | grep -q "^perf version $(uname -r | grep -o '^[0-9]*\.[0-9]*')\." || fail "this is not $(uname -r)'s: $(perf --version)"

# Each counter is an event of each card's PMU, under its name.
perf list -j >/tmp/list 2>/tmp/error || fail "perf list: $(cat /tmp/error)"
for card in 0 1; do
    for counter in /sys/class/accel/accel"$card"/device/counters/*; do
        grep -q "\"EventName\": \"orrery_$card/${counter##*/}/\"" /tmp/list || fail "perf list has no orrery_$card/${counter##*/}/"
    done
done
[ "$(grep -c '"EventName": "orrery_0/' /tmp/list)" -ge 70 ] || fail "perf list: $(cat /tmp/list)"

# What perf says of an event, with or without its unit before it, in `perf stat -x,`.
counted() { awk -F, -v event="$1" '$3 == event { print $1 }' /tmp/stat; }
# What orrDeviceGetCounters says of a card's counter, in a file of orrery-smi.
told() { awk -v card="$2" -v name="\"$3\":" '$1 == name && n++ == card { print $2 + 0 }' "$1"; }

# How often perf has asked a card in vain: its event stands still then, and begins late.
late() { cat /sys/kernel/debug/accel/*/waits | awk '$1 == "late_snapshots" { n += $2 } END { print n + 0 }'; }

# Around a sample on two cards: what orrDeviceGetCounters tells of the time between. Anew if a card was late.
tries=0
while :; do
    tries=$((tries + 1))
    [ $tries -le 20 ] || fail "a card was late each of 20 times"
    was_late=$(late)
    orrery-smi --json >/tmp/before || fail "orrery-smi"
    perf stat -x, -o /tmp/stat -a -e '{orrery_0/time_ps/,orrery_0/core_busy_ps/,orrery_0/core_idle_ps/}' \
        -e '{orrery_1/copy_bytes/,orrery_1/vector_instructions/,orrery_1/vector_busy_ps/}' \
        -e '{orrery_1/core_busy_ps/,orrery_1/core_other_ps/,orrery_1/core_packets_ps/,orrery_1/core_scheduling_ps/,orrery_1/core_completions_ps/,orrery_1/core_mailbox_ps/,orrery_1/core_links_ps/}' \
        -e orrery_0/copy_bytes/,orrery_0/vector_instructions/,orrery_0/vector_groups/,orrery_0/link_rx_bytes/,orrery_0/ring_packets/,orrery_0/doorbell_pops/ \
        -e orrery/copy_jobs/ histogram --cards 2 >/tmp/out 2>&1 || fail "perf stat: $(cat /tmp/out)"
    orrery-smi --json >/tmp/after || fail "orrery-smi"
    [ "$(late)" != "$was_late" ] || break
done
for event in 0/copy_bytes 0/ring_packets 0/doorbell_pops 0/vector_instructions 0/vector_groups 0/link_rx_bytes 1/copy_bytes 1/vector_instructions 1/vector_busy_ps; do
    name=${event#*/}
    want=$(($(told /tmp/after "${event%/*}" "$name") - $(told /tmp/before "${event%/*}" "$name")))
    [ "$want" -gt 0 ] || fail "the sample does nothing that $event counts"
    [ "$(counted "orrery_$event/")" = "$want" ] || fail "orrery_$event/: $want by orrDeviceGetCounters; $(cat /tmp/stat)"
done
# A group is of one moment.
[ "$(counted orrery_0/time_ps/)" = "$(($(counted orrery_0/core_busy_ps/) + $(counted orrery_0/core_idle_ps/)))" ] ||
    fail "a group does not add up: $(cat /tmp/stat)"
# What the firmware says that it does is all that its core does.
sum=0
for activity in other packets scheduling completions mailbox links; do
    sum=$((sum + $(counted orrery_1/core_${activity}_ps/)))
done
[ "$sum" -gt 0 ] || fail "the firmware does nothing: $(cat /tmp/stat)"
[ "$(counted orrery_1/core_busy_ps/)" = "$sum" ] || fail "activities do not add up: $(cat /tmp/stat)"
grep -q '^[0-9]*,bytes,orrery_0/copy_bytes/' /tmp/stat || fail "no unit: $(cat /tmp/stat)"
# orrery/NAME/ is that of all cards.
jobs=0
for card in 0 1; do jobs=$((jobs + $(told /tmp/after $card copy_jobs) - $(told /tmp/before $card copy_jobs))); done
[ "$(awk -F, '$3 ~ /copy_jobs/ { n += $1 } END { print n + 0 }' /tmp/stat)" = "$jobs" ] || fail "orrery/copy_jobs/: $jobs; $(cat /tmp/stat)"
# An event is of a CPU and of no process (perf says so in words of its own, or gives no number), and cannot sample.
perf stat -x, -o /tmp/none -e orrery_0/time_ps/ -p $$ sleep 0 >/tmp/out 2>&1
if grep '^[0-9]' /tmp/none; then fail "an event of a process"; fi
if perf record -a -o /tmp/data -e orrery_0/copy_bytes/ true >/tmp/out 2>&1; then fail "it samples: $(cat /tmp/out)"; fi

# A plain user is refused as perf's own setting says.
echo 'user:x:1000:1000::/tmp:/bin/sh' >>/etc/passwd
if su user -c 'perf stat -x, -a -e orrery_0/copy_bytes/ true' >/tmp/out 2>&1; then fail "a user counts: $(cat /tmp/out)"; fi
grep -q 'perf_event_paranoid' /tmp/out || fail "no reason: $(cat /tmp/out)"
if su user -c 'perf record -a -o /tmp/user -e orrery:orr_command true' >/tmp/out 2>&1; then fail "a user traces: $(cat /tmp/out)"; fi
echo 0 >/proc/sys/kernel/perf_event_paranoid
su user -c 'perf stat -x, -a -e orrery_0/copy_bytes/ true' >/tmp/out 2>&1 || fail "0 lets a user count: $(cat /tmp/out)"

# Tracepoints: who asked for what, by both programs, with nothing that they cannot read.
perf record -a -o /tmp/data -e 'orrery:*' kmod_work >/tmp/out 2>&1 || fail "perf record: $(cat /tmp/out)"
perf script -i /tmp/data >/tmp/perf 2>/tmp/error || fail "perf script: $(cat /tmp/error)"
perf report -i /tmp/data --stdio 2>/dev/null | grep -q 'kmod_work' || fail "perf report"
trace-cmd record -e orrery -o /tmp/trace.dat kmod_work >/tmp/out 2>&1 || fail "trace-cmd record: $(cat /tmp/out)"
trace-cmd report -i /tmp/trace.dat >/tmp/trace-cmd 2>/tmp/error || fail "trace-cmd report: $(cat /tmp/error)"
for tool in perf trace-cmd; do
    for event in 'orr_command: *card=0 sequence=' 'orr_reply: *card=0 sequence=.* status=0' "orr_queue_create: *card=0 queue=.* name='kmod_work" \
        'orr_queue_destroy: *card=0' 'orr_map: *card=0' 'orr_interrupt: *card=0'; do
        grep -q "$event" /tmp/$tool || fail "$tool shows no $event: $(cat /tmp/$tool)"
    done
    ! grep 'FAILED TO PARSE' /tmp/$tool || fail "$tool cannot read that"
    grep -q '^ *kmod_work.*orr_command' /tmp/$tool || fail "$tool does not say whose: $(cat /tmp/$tool)"
done
