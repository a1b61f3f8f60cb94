#!/bin/sh
# sysfs.sh CARDS: what the driver shows of each card.
set -u
. /tests/guest_functions.sh
found=0
for card in /sys/bus/pci/drivers/orrery/0000:*; do
    cd "$card" || fail "no card"
    found=$((found + 1))
    grep -qE '^[0-9a-f]{16}$' uid || fail "uid: $(cat uid)"
    [ "$(cat state)" = running ] || fail "state: $(cat state)"
    grep -qE '^[0-9]+\.[0-9]+\.[0-9]+ .+' firmware_version || fail "firmware_version: $(cat firmware_version)"
    [ "$(cat vram_used)" = 0 ] || fail "vram_used: $(cat vram_used)"
    [ "$(cat vram_size)" -gt 0 ] || fail "vram_size: $(cat vram_size)"
    [ -s sku ] || fail "sku"
    [ "$(cat counters/core_instructions)" -gt 0 ] || fail "counters/core_instructions"
    [ "$(cat counters/guest_errors)" = 0 ] || fail "the driver made $(cat counters/guest_errors) wrong accesses"
    [ "$(cat counters/unimplemented)" = 0 ] || fail "the driver used what the card does not have"
    for port in links/*; do
        grep -qE '^(up|down)$' "$port/state" || fail "$port/state: $(cat "$port/state")"
        grep -qxE '[0-9]+' "$port/losses" || fail "$port/losses: $(cat "$port/losses")"
        if [ "$(cat "$port/state")" = up ]; then
            grep -qE '^[0-9a-f]{16} [0-9]+$' "$port/peer" || fail "$port/peer: $(cat "$port/peer")"
            grep -q 'Gbit/s$' "$port/rate" || fail "$port/rate"
            grep -q 'ns$' "$port/latency" || fail "$port/latency"
            [ "$(cat "$port/lanes")" -gt 0 ] || fail "$port/lanes"
            [ "$(cat "$port/width")" = "$(cat "$port/lanes")/$(cat "$port/lanes")" ] || fail "$port/width: $(cat "$port/width")"
            [ "$(cat "$port/changes")" -ge 2 ] || fail "$port/changes: $(cat "$port/changes")"
        else
            [ "$(cat "$port/peer")" = none ] || fail "$port/peer: $(cat "$port/peer")"
        fi
        for count in rx_messages rx_bytes tx_messages tx_bytes; do
            grep -qxE '[0-9]+' "$port/$count" || fail "$port/$count: $(cat "$port/$count")"
        done
        for count in crc_errors retries retrains; do
            [ "$(cat "$port/$count")" = 0 ] || fail "$port/$count: $(cat "$port/$count")"
        done
    done
done
[ "$found" = "$1" ] || fail "$found cards instead of $1"
