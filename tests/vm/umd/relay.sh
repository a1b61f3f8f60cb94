#!/bin/sh
# What docs/synchronisation.md shows: a relay of four cards, and the two mistakes that it can make.
set -u
fail() {
    echo "relay.sh: $*" >&2
    exit 1
}
relay >out 2>&1 || fail "$(cat out)"
grep -q '^4 cards handed 65536 bytes round 4 times: .* a handover, correct$' out || fail "$(cat out)"
relay --cards 2 --rounds 255 --size 64 >out 2>&1 || fail "$(cat out)"

# A card may stand still for some seconds; then it would be seen where it is and not where it ends.
relay --forget 1:2 --patience 20 >out 2>&1 && fail "a card forgot, and nobody noticed: $(cat out)"
for value in 0:2 1:2 2:1 3:1; do
    grep -q "^card ${value%:*}: 'baton ${value%:*}' is ${value#*:}$" out || fail "$(cat out)"
done

relay --all-wait >out 2>&1 && fail "all waited, and nobody noticed: $(cat out)"
grep -q '^relay: orrErrorDeadlock: deadlock of 4 streams over cards: ' out || fail "$(cat out)"
grep -q "'runner 0' on device 0 waits for semaphore 'baton 0' to reach 1, which stream 'runner 3' on device 3 would signal" out ||
    fail "$(cat out)"
relay --forget 4:1 >out 2>&1
[ $? = 2 ] || fail "a card that there is not: $(cat out)"
