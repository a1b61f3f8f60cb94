#!/bin/bash
# hang.sh ORRERY-VM ORRERY-STEP FOLDER: the worked case of docs/synchronisation.md, "Somebody forgot": the program says how far each
# card has come, and the recordings who should have gone on and what he did instead.
set -euo pipefail
vm=$1 step=$2 folder=$3
rm -rf "$folder"
mkdir -p "$folder"
fail() { echo "FAILED: $*; see $folder" >&2; exit 1; }

"$vm" --cards 4 --timeout 240 --record "$folder" --logs "$folder/logs" -- sh -c 'relay --forget 1:2 --patience 20; echo "it ended with $?"' \
    >"$folder/said" 2>&1 || fail "the VM: $(tail -n 5 "$folder/said")"
grep -q 'it ended with 1' "$folder/said" || fail "relay does not say that it failed: $(cat "$folder/said")"
grep -q 'the buffer has not come back' "$folder/said" || fail "relay: $(cat "$folder/said")"
for said in "0: 'baton 0' is 2" "1: 'baton 1' is 2" "2: 'baton 2' is 1" "3: 'baton 3' is 1"; do
    grep -q "card $said" "$folder/said" || fail "not said: card $said; $(cat "$folder/said")"
done

# Each card where its stream has begun its last wait; how that was ended in the end does not matter.
look=()
for card in 0 1 2 3; do
    look+=(-c "card $card" -c 'goto end' -c 'back until event.type == error' -c 'back until event.type == wait' -c 'step 1 insn' -c path)
done
"$step" "$folder"/card?.otrace "${look[@]}" -c 'card 1' -c "events 100000" >"$folder/step" || fail "orrery-step: $(tail -n 3 "$folder/step")"
# Who waits for which round, and who raised what he waits for last, to what: all were told of the round that they wait behind.
for found in "0 3 3 2" "1 3 0 2" "2 2 1 1" "3 2 2 1"; do
    read -r card round before told <<<"$found"
    grep -A 1 -E "card $card  queue [0-9]+ \"runner $card\"  waits for semaphore [0-9]+ >= $round\$" "$folder/step" |
        grep -qE "^nobody signals that; queue [0-9]+ \"runner $before\" of card $before was the last who raised it, to $told, at" ||
        fail "path of card $card does not lead to card $before: $(grep -E 'waits for sem|nobody' "$folder/step")"
done
# What card 1 did instead: behind the copy of round 1 two signals, the copy's own and the baton's; behind that of round 2 one.
# Where the host was late its stream had no need to wait in between, so round 1 ends where the next one has begun.
signals_between() { # FIRST LAST
    local events end
    events=$(sed -n '/^card 1> events /,$p' "$folder/step" | sed -n "/$1/,/$2/p")
    for end in "$1" "$2"; do grep -q "$end" <<<"$events" || fail "no '$end' of card 1"; done
    grep -c '  signal ' <<<"$events" || true
}
round_1=$(signals_between 'starts packet 3 (COPY' 'starts packet 7 (FILL')
[ "$round_1" = 2 ] || fail "round 1 of card 1 has $round_1 signals, not two"
round_2=$(signals_between 'starts packet 8 (COPY' 'wait .*, packet 10$')
[ "$round_2" = 1 ] || fail "round 2 of card 1 has $round_2 signals, not one"
