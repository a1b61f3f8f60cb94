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
