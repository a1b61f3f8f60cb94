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
# Half of a link's payload is reached, and no more than all of it; who has no link of its own is left out, or shown with its
# hops. How much it is `make bench` judges: on a slow host the process still speaks to the cards while they copy.
orrery-bench-p2p --model --size 1048576 --json >json || fail "--json: status $?: $(cat json)"
awk '
    function number(line) { sub(/.*: /, "", line); sub(/,$/, "", line); return line }
    /"links": 1,/ { pairs++; direct = 1 }
    /"links": 2,/ { direct = 0 }
    /"link_gb_per_s"/ { limit = number($0) }
    /"one_way_gb_per_s"/ && direct { ratio = number($0) / limit; if (ratio < 0.5 || ratio > 1) wrong = wrong " one way " ratio }
    /"both_ways_gb_per_s"/ && direct { ratio = number($0) / limit; if (ratio < 1 || ratio > 2) wrong = wrong " both ways " ratio }
    /"signal_ns"/ && direct { if (number($0) + 0 < 500) wrong = wrong " signal " number($0) }
    END { if (pairs != 8 || wrong != "") { print pairs " pairs" wrong; exit 1 } }
' json >wrong || fail "$(cat wrong json)"
orrery-bench-p2p --size 0 2>/dev/null
[ $? = 2 ] || fail "--size 0"
orrery-bench-p2p --model --host 2>/dev/null
[ $? = 2 ] || fail "--model --host"
orrery-bench-p2p --measure 1,x 2>/dev/null
[ $? = 2 ] || fail "--measure 1,x"

# Copies over several links, and of several cards at once.
orrery-bench-p2p --patterns --size 1048576 --json >json || fail "--patterns: status $?: $(cat json)"
for what in "copies over 1 link" "copies over 2 links" "signal over 2 links" "all to all" "3 to 1"; do
    grep -q "\"what\": \"$what\"" json || fail "no '$what': $(cat json)"
done
orrery-bench-p2p --measure-pattern "copies over 2 links" | grep -q '"name":"copies over 2 links, model time"' ||
    fail "--measure-pattern"
orrery-bench-p2p --measure-pattern nothing 2>/dev/null
[ $? = 1 ] || fail "--measure-pattern nothing"
