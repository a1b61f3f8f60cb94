#!/bin/sh
# guest.sh: the guest's half of rounds.sh. Each round loads the driver, lets a sample work on all cards and another program
# on those that stay, and unloads the driver; meanwhile the host kills the card named in the order for the round, and looks
# at the clock.
set -u
# shellcheck source=tests/vm/kmod/guest_functions.sh
. /tests/guest_functions.sh
hang=120 # seconds; the host counts what is too long
addresses=
for driven in /sys/bus/pci/drivers/orrery/0000:*; do
    [ ! -e "$driven" ] || addresses="$addresses ${driven##*/}"
done

node_of() { # a PCI address's number of a device node, if it has one
    for node in "/sys/bus/pci/devices/$1/accel/accel"*; do
        [ -e "$node" ] && echo "${node##*accel}"
    done
}
seconds() {
    read -r up rest </proc/uptime
    echo "${up%.*}"
}
until_there() { # FILE WHAT
    since=$(seconds)
    until [ -e "$1" ]; do
        [ $(($(seconds) - since)) -lt $hang ] || { look_at "${3-}"; fail "$2"; }
        sleep 0.02
    done
}
look_at() { # NAME of a program that hangs: where its threads are, and its memory for gdb
    for task in /proc/[0-9]*/task/*; do
        read -r name <"$task/comm" || continue
        case $name in "$1"* | orr*) echo "$task $name $(cat "$task/syscall") $(tr '\n' ' ' <"$task/stack")" ;; esac
    done
    mount -t debugfs debugfs /sys/kernel/debug 2>/dev/null
    for queues in /sys/kernel/debug/accel/*/queues; do
        echo "$queues"
        cat "$queues"
    done
    [ -z "$1" ] || { killall -ABRT "$1"; sleep 5; }
}

# Works on card after card until told to stop, and then once more on each.
bystanders() { # NODE...
    last=
    while :; do
        [ ! -e /tmp/stop ] || last=yes
        for node in "$@"; do
            kmod_work 1 "$node" || { echo "card $node does not work" >/tmp/bystander; return; }
            [ -n "$last" ] || [ ! -e /tmp/stop ] || break
        done
        [ -z "$last" ] || return
    done
}

round() { # NUMBER VICTIM SAMPLE...
    number=$1
    victim=$(echo "$addresses" | awk "{ print \$($2 + 1) }")
    shift 2
    rm -f /tmp/stop /tmp/bystander
    : >"/share/go.$number"
    load
    sleep 0.05
    others=
    for address in $addresses; do
        [ "$address" = "$victim" ] || others="$others $(node_of "$address")"
    done
    # shellcheck disable=SC2086 # words
    [ -z "${others# }" ] || bystanders $others &
    watcher=$!
    ("$@" >/tmp/out 2>/tmp/err; echo $? >/share/end.new; mv /share/end.new "/share/end.$number") &
    until_there "/share/killed.$number" "the host does not kill"
    until_there "/share/end.$number" "round $number: '$*' hangs since its card $victim died" "$1"
    read -r status <"/share/end.$number"
    if [ "$status" != 0 ]; then
        grep -q -i 'lost\|no such device\|went away\|no Orrery card\|no link that is up\|link that is down' /tmp/err ||
            fail "round $number: '$*' ended with status $status and without the cause: $(cat /tmp/out /tmp/err)"
    fi
    sleep 0.3
    : >/tmp/stop
    wait $watcher
    [ ! -e /tmp/bystander ] || fail "round $number: $(cat /tmp/bystander), though only $victim died"
    unload
    echo "$victim: $(head -n 1 /tmp/err)" >/share/done.new
    mv /share/done.new "/share/done.$number"
}

echo /share/core >/proc/sys/kernel/core_pattern
# shellcheck disable=SC3045 # busybox has it
ulimit -c unlimited
unload
number=0
while :; do
    until [ -e "/share/round.$number" ]; do
        [ ! -e /share/enough ] || exit 0
        sleep 0.05
    done
    # shellcheck disable=SC2046 # words
    round $number $(cat "/share/round.$number")
    number=$((number + 1))
done
