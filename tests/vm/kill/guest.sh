#!/bin/sh
# guest.sh LIMIT: the guest's half of rounds.sh. Each round loads the driver, lets a sample work on all cards and another
# program on one that stays, and unloads the driver; meanwhile the host kills the card named in the order for the round.
set -u
# shellcheck source=tests/vm/kmod/guest_functions.sh
. /tests/guest_functions.sh
limit=$1
addresses=
for driven in /sys/bus/pci/drivers/orrery/0000:*; do
    [ ! -e "$driven" ] || addresses="$addresses ${driven##*/}"
done

now() { # seconds since boot, to 10 ms
    read -r up rest </proc/uptime
    echo "$up"
}
node_of() { # a PCI address's number of a device node, if it has one
    for node in "/sys/bus/pci/devices/$1/accel/accel"*; do
        [ -e "$node" ] && echo "${node##*accel}"
    done
}
longer() { awk "BEGIN { exit !($1 - $2 > $3) }"; } # did it take longer from $2 to $1 than $3 seconds?

# Works on one card, again and again, until told to stop.
bystander() {
    until [ -e /tmp/stop ]; do
        kmod_work 1 "$1" || { echo "card $1 does not work" >/tmp/bystander; return; }
    done
}

round() { # NUMBER VICTIM SAMPLE...
    number=$1
    victim=$(echo "$addresses" | awk "{ print \$($2 + 1) }")
    shift 2
    rm -f /tmp/stop /tmp/bystander /tmp/end
    : >"/share/go.$number"
    began=$(now)
    load
    sleep 0.05
    others=
    for address in $addresses; do
        node=$(node_of "$address")
        [ "$address" = "$victim" ] || others=${others:-$node}
    done
    [ -z "$others" ] || bystander "$others" &
    watcher=$!
    ("$@" >/tmp/out 2>/tmp/err; echo "$? $(now)" >/tmp/end.new; mv /tmp/end.new /tmp/end) &
    until [ -e "/share/killed.$number" ]; do sleep 0.02; done
    killed=$(now)
    until [ -e /tmp/end ]; do
        longer "$(now)" "$killed" 20 && fail "round $number: '$*' hangs since its card $victim died"
        sleep 0.02
    done
    read -r status end </tmp/end
    longer "$end" "$killed" "$limit" &&
        fail "round $number: '$*' was told $(awk "BEGIN { print $end - $killed }") s after its card $victim died: $(cat /tmp/err)"
    if [ "$status" != 0 ]; then
        grep -q -i 'lost\|no such device\|went away\|no Orrery card\|no link that is up\|link that is down' /tmp/err ||
            fail "round $number: '$*' ended with status $status and without the cause: $(cat /tmp/out /tmp/err)"
    fi
    sleep 0.3
    : >/tmp/stop
    wait $watcher
    [ ! -e /tmp/bystander ] || fail "round $number: $(cat /tmp/bystander), though only $victim died"
    unload
    echo "round $number: '$*', $(awk "BEGIN { print $killed - $began }") s after the start $victim died:" \
        "status $status $(awk "BEGIN { print $end - $killed }") s later: $(head -n 1 /tmp/err)"
    echo "$began $end $status" >"/share/done.new"
    mv /share/done.new "/share/done.$number"
}

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
