#!/bin/sh
# What orrery-bench-p2p measures between four cards in a ring that keep step.
set -u
fail() {
    echo "p2p.sh: $*" >&2
    exit 1
}
links_are ring || fail "the links"
orrery-bench-p2p --model --size 1048576 >table || fail "status $?: $(cat table)"
for what in "one way, GB/s of model time" "both ways at once, sum" "a signal one way"; do
    grep -q "^$what" table || fail "no '$what': $(cat table)"
done
grep -q "host's time" table && fail "host times: $(cat table)"
# Between cards that keep step copies take the same in every run, but for what a slow host still has to say to the card
# while they run: some 100 ns each time, of 22 us a copy and 3 us a signal, and more often the busier that host is. So
# the lower bounds leave room, and `make bench` judges; nobody reaches more than the links allow.
orrery-bench-p2p --model --size 1048576 --json >json || fail "--json: status $?: $(cat json)"
awk '
    function number(line) { sub(/.*: /, "", line); sub(/,$/, "", line); return line + 0 }
    function within(what, value, least, most) { if (value < least || value > most) wrong = wrong " " what " " value }
    /"links": [12],/ { ++pairs[number($0)]; links = number($0) }
    /"link_gb_per_s"/ { limit = number($0) }
    /"link_latency_ns"/ { latency = number($0) }
    /"one_way_gb_per_s"/ { within("one way", number($0) / limit, 0.75, 1) }
    /"both_ways_gb_per_s"/ { within("both ways", number($0) / limit, 1.5, 2) }
    /"signal_ns"/ { within("signal over " links, number($0), latency, 12000) }
    END { if (pairs[1] != 8 || pairs[2] != 4 || wrong != "") { print pairs[1] " and " pairs[2] " pairs" wrong; exit 1 } }
' json >wrong || fail "$(cat wrong json)"
# OPTION...: a mistake, of which one line tells.
refuses() {
    orrery-bench-p2p "$@" >said 2>&1
    [ $? = 2 ] && [ "$(wc -l <said)" = 1 ] && grep -q "^orrery-bench-p2p: --" said || fail "$*: $(cat said)"
}
refuses --size 0
refuses --model --host
refuses --measure 1,x
refuses --prefix "orrery-0: "
refuses --prefix "orrery-0: " --patterns

# Copies over several links, and of several cards at once.
orrery-bench-p2p --patterns --size 1048576 --json >json || fail "--patterns: status $?: $(cat json)"
# Each pattern, and the share that it reaches of what the links allow; in a ring ways do not use all of them.
holds() {
    awk -v what="$1" -v least="$2" -v most="$3" '
        function number(line) { sub(/.*: /, "", line); sub(/,$/, "", line); return line + 0 }
        /"what"/ { mine = index($0, "\"" what "\"") != 0 }
        /"measured"/ && mine { measured = number($0) }
        /"expected"/ && mine { found = 1; share = measured / number($0) }
        END { if (!found || share < least || share > most) { print what ": " share; exit 1 } }
    ' json >wrong || fail "$(cat wrong json)"
}
holds "copies over 1 link" 0.75 1
holds "copies over 2 links" 0.75 1
holds "signal over 2 links" 1 10
holds "all to all" 0.45 0.75
holds "3 to 1" 0.55 0.85
orrery-bench-p2p --measure-pattern "copies over 2 links" | grep -q '"name":"copies over 2 links, model time"' ||
    fail "--measure-pattern"
orrery-bench-p2p --measure-pattern nothing 2>/dev/null
[ $? = 1 ] || fail "--measure-pattern nothing"
