#!/bin/sh
# Three cards in a chain that keep step. Of the link between card 0 and 1 two of four lanes are bad when it trains, which
# both ends know; of what card 2 sends to card 1 all but one fail later, which it knows alone. Driver, smi and the bench's
# expectation have it, and copies reach what is left.
set -u
fail() {
    echo "narrow.sh: $*" >&2
    exit 1
}
port_is() { # CARD PORT STATE WIDTH RATE
    port=$(readlink -f "/sys/class/accel/accel$1/device/links/$2")
    is="$(cat "$port/state") $(cat "$port/width") $(cat "$port/rate")"
    [ "$is" = "$3 $4 $5 Gbit/s" ] || fail "card $1 port $2: $is, not $3 $4 $5 Gbit/s"
}
smi_has() { # CARD PORT STATE LANES RATE
    orrery-smi links >links || fail "links: $(cat links)"
    grep -qE "^card $1 +$2  $3 +$4 +$5 +500 " links || fail "no $3 $4 $5 of card $1 port $2: $(cat links)"
}
port_is 0 0 degraded 2/4 200
port_is 1 0 degraded 2/4 200
port_is 1 1 up 4/4 400
port_is 2 0 up 4/4 400
smi_has 0 0 degraded 2/4 200
smi_has 2 0 up 4 400

histogram --cards 3 >out 2>&1 || fail "histogram: $(cat out)"
port_is 2 0 degraded 1/4 100
port_is 1 1 up 4/4 400
[ "$(cat "$port/retrains") $(cat "$port/losses")" = "0 0" ] || fail "card 1 has trained"
port_is 2 0 degraded 1/4 100
[ "$(cat "$port/retrains") $(cat "$port/losses")" = "1 0" ] || fail "card 2 has trained $(cat "$port/retrains") times"
smi_has 0 0 degraded 2/4 200
smi_has 1 0 degraded 2/4 200
smi_has 1 1 up 4 400
smi_has 2 0 degraded 1/4 100

orrery-smi topo >topo || fail "topo: $(cat topo)"
topo_has() { grep -qE "$1" topo || fail "topo does not say $1: $(cat topo)"; }
topo_has "^card 0 +X +200G x2 +2 hops "
topo_has "^card 1 +200G x2 +X +400G x4 "
topo_has "^card 2 +2 hops +100G x1 +X "
topo_has "200 Gbit/s each way on 2 lanes"
topo_has "400 Gbit/s from the card on the left to the one above, on 4 lanes"
topo_has "100 Gbit/s from the card on the left to the one above, on 1 lane$"

orrery-bench-p2p --model --size 1048576 --json >json || fail "p2p: status $?: $(cat json)"
# GB/s of each pair by the rates above, and of as many bytes both ways at once by twice the slower one. Room below: see p2p.sh.
awk '
    function number(line) { sub(/.*: /, "", line); sub(/,$/, "", line); return line + 0 }
    function within(what, value, least, most) { if (value < least || value > most) wrong = wrong " " pair " " what " " value }
    BEGIN {
        allowed["0 1"] = allowed["1 0"] = allowed["0 2"] = 25
        allowed["1 2"] = 50
        allowed["2 1"] = allowed["2 0"] = 12.5
        both["0 1"] = both["1 0"] = 50
        both["0 2"] = both["2 0"] = both["1 2"] = both["2 1"] = 25
    }
    /"from"/ { from = number($0) }
    /"to"/ { pair = from " " number($0); ++pairs }
    /"link_gb_per_s"/ { within("is expected to make", number($0), allowed[pair], allowed[pair]) }
    /"one_way_gb_per_s"/ { within("of its rate", number($0) / allowed[pair], 0.75, 1) }
    /"both_ways_gb_per_s"/ { within("both ways", number($0) / both[pair], 0.75, 1) }
    END { if (pairs != 6 || wrong != "") { print pairs " pairs:" wrong; exit 1 } }
' json >wrong || fail "$(cat wrong json)"
