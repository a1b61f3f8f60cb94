#!/bin/sh
# Eight cards on a fat tree, of which one spine dies at its fifth message to card 0's leaf: who has lost something is
# told, with the link between two switches that went down, and what begins after that goes by the other spine.
set -u
fail() {
    echo "tree.sh: $*" >&2
    exit 1
}
# The uids of those that are there, one a line.
spines() {
    orrery-smi topo --json >topo || fail "topo"
    awk -F '"' '/"uid"/ { uid = $4 } /"level": 1/ { print uid }' topo
}
# As histogram is told. CARD: which was written to.
is_told() {
    grep -Eq "orrErrorPeerAccess: .* to device $1 was lost, as the link from port [0-9]+ of switch $id to switch $id went down" out
}
id='[0-9a-f]{16}'
spines >before
histogram --cards 8 >out 2>&1 && fail "nothing was lost: $(cat out)"
is_told 0 || fail "no cause, or no link: $(cat out)"
# A leaf is at one end, and the spine that has gone at the other.
gone=$(sed -n "s/.* to switch \([0-9a-f]*\) went down.*/\1/p" out)
grep -qx "$gone" before || fail "it is not the link to a spine: $gone, $(cat before out)"
# The drivers agree about one pair of cards after the other that what is on the way there is lost; what begins before a
# pair's turn is told of it once more.
tries=0
until histogram --cards 8 >out 2>&1; do
    is_told '[0-7]' || fail "not by the other spine: $(cat out)"
    tries=$((tries + 1))
    [ $tries -lt 8 ] || fail "always lost: $(cat out)"
done
grep -q " yes$" out || fail "not correct: $(cat out)"
grep -q " no$" out && fail "not correct: $(cat out)"
# The leaves know it when they look at their links.
tries=0
while spines >after && grep -qx "$gone" after; do
    tries=$((tries + 1))
    [ $tries -lt 50 ] || fail "switch $gone is there: $(cat out)"
    sleep 0.1
done
exit 0
