#!/bin/sh
# Two cards that keep step, joined by a link whose wire damages frames: programs come to the right results, and what
# it cost is counted. Prints the times of a play.
# shellcheck disable=SC2154 # eval assigns the counts of each port
set -u
fail() {
    echo "bit_errors_guest.sh: $*" >&2
    exit 1
}
links_are pair || fail "the link"
# The first play finds tables that nobody has used.
for play in first second; do
    umd_vm_test --gtest_filter=InStep.APlay >$play || fail "a play: $(cat $play)"
done
grep '^times ' second || fail "no times"
histogram || fail "histogram"
umd_vm_test --gtest_filter=InStep.NothingIsLate >late || fail "$(cat late)"

orrery-smi links >links || fail "links: $(cat links)"
number=0
for card in /sys/bus/pci/drivers/orrery/0000:*; do
    for port in "$card"/links/*; do
        [ "$(cat "$port/state")" = down ] && continue
        number=$((number + 1))
        for count in crc_errors retries tx_messages rx_messages tx_bytes rx_bytes; do
            eval "${count}_$number=$(cat "$port/$count")"
        done
        [ "$(cat "$port/retrains")" = 0 ] || fail "retrains"
        grep -qE "^card $((number - 1)) +[0-9]+  up .* +0 +$(cat "$port/crc_errors") +$(cat "$port/retries") +0  to card" links ||
            fail "$(cat links)"
    done
done
[ $number = 2 ] || fail "$number ports"
[ "$retries_1" -gt 0 ] && [ "$retries_2" -gt 0 ] || fail "no frame was damaged: $retries_1, $retries_2"
[ "$retries_1" = "$crc_errors_2" ] && [ "$retries_2" = "$crc_errors_1" ] ||
    fail "retries $retries_1 and $retries_2, CRC errors $crc_errors_2 and $crc_errors_1"
[ "$tx_messages_1 $tx_bytes_1" = "$rx_messages_2 $rx_bytes_2" ] || fail "what card 0 sent"
[ "$tx_messages_2 $tx_bytes_2" = "$rx_messages_1 $rx_bytes_1" ] || fail "what card 1 sent"
echo "$retries_1 and $retries_2 frames were sent again" >&2
