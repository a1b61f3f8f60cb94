#!/bin/sh
# Eight cards on a fat tree, of which one spine dies at its fifth message to card 0's leaf: who has lost something is
# told, and what begins after that goes by the other spine.
set -u
fail() {
    echo "tree.sh: $*" >&2
    exit 1
}
histogram --cards 8 >out 2>&1 && fail "nothing was lost: $(cat out)"
grep -q "orrErrorPeerAccess: .* to device 0 was lost" out || fail "no cause: $(cat out)"
# The drivers agree about one pair of cards after the other that what is on the way there is lost; what begins before a
# pair's turn is told of it once more.
tries=0
until histogram --cards 8 >out 2>&1; do
    grep -q "orrErrorPeerAccess: .* to device [0-7] was lost" out || fail "not by the other spine: $(cat out)"
    tries=$((tries + 1))
    [ $tries -lt 8 ] || fail "always lost: $(cat out)"
done
grep -q " yes$" out || fail "not correct: $(cat out)"
grep -q " no$" out && fail "not correct: $(cat out)"
exit 0
