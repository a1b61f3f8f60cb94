#!/bin/sh
# Four cards on one switch: everybody reaches everybody, by a way of two links.
set -u
fail() {
    echo "one.sh: $*" >&2
    exit 1
}
for peer in /sys/class/accel/accel*/device/links/0/peer; do
    grep -q ' switch$' "$peer" || fail "$peer: $(cat "$peer")"
done
histogram --cards 4 >out || fail "histogram: status $?: $(cat out)"
grep -q "no$" out && fail "histogram counted wrong: $(cat out)"
orrery-bench-p2p --model --size 1048576 --json >json || fail "p2p: status $?: $(cat json)"
# Cards that do not keep step: what a slow host says late costs the copy some hundred nanoseconds each time.
awk '
    function number(line) { sub(/.*: /, "", line); sub(/,$/, "", line); return line }
    /"one_way_gb_per_s"/ { pairs++; if (number($0) < 37 || number($0) > 50) wrong = wrong " one way " number($0) }
    END { if (pairs != 12 || wrong != "") { print pairs " pairs" wrong; exit 1 } }
' json >wrong || fail "$(cat wrong json)"

# What orrery-smi says of it.
orrery-smi topo --svg switch.svg >topo || fail "topo: $(cat topo)"
grep -qE '^card 0 +X +switch +switch +switch +0000:' topo || fail "$(cat topo)"
grep -q '^4 cards on 1 switch$' topo || fail "$(cat topo)"
grep -q '^  switch  copies go over one switch or several$' topo || fail "$(cat topo)"
grep -q '<title>4 cards on 1 switch</title>' switch.svg || fail "the picture"
[ "$(grep -c '>switch<' switch.svg)" = 1 ] || fail "the switch in the picture"
tail -n 1 switch.svg | grep -qx '</svg>' || fail "the end of the picture"
orrery-smi topo --json >topo || fail "topo --json: $(cat topo)"
[ "$(grep -c '"kind": "switch"' topo)" = 12 ] || fail "$(cat topo)"
orrery-smi links >links || fail "links: $(cat links)"
[ "$(grep -cE '^card [0-3] +0  up .*  to switch [0-9a-f]{16} port [0-3]$' links)" = 4 ] || fail "$(cat links)"
