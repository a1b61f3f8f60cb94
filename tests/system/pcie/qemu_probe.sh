#!/bin/bash
# Stock QEMU and its firmware against the test card: qemu_probe.sh TEST_CARD
# Each interrupt mode is attached, found by the firmware with the right BARs, and reset; the card then serves the next
# QEMU. A VM whose memory is not shared is refused with the reason.
set -euo pipefail
[ $# = 1 ] || { echo "usage: ${0##*/} TEST_CARD" >&2; exit 2; }
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../../.." && pwd)
tree=$("$root/tools/vm/tree.sh")
work=$(mktemp -d)
card=
cleanup() {
    [ -z "$card" ] || kill -TERM "$card" 2> /dev/null || true
    rm -rf -- "$work"
}
trap cleanup EXIT

fail() {
    echo "FAILED: $1" >&2
    for file in "$work"/*.log; do echo "--- $(basename "$file")"; tail -n 60 "$file"; done >&2
    exit 1
}

# The firmware has no say in when QEMU reads commands; it probes within the first second or so. The monitor is
# asked again until the card's BARs are there.
qemu() { # machine, monitor commands on stdin
    timeout 100 "$tree/lib64/ld-linux-x86-64.so.2" --library-path "$tree/usr/lib/x86_64-linux-gnu" \
        "$tree/usr/bin/qemu-system-x86_64" -L "$tree/usr/share/qemu" -L "$tree/usr/share/seabios" \
        -machine "$1" -accel tcg -m 256 -object memory-backend-memfd,id=ram,size=256M,share=on -nodefaults \
        -display none -monitor stdio -device pcie-root-port,id=port0,chassis=1,slot=1 -device \
        '{"driver":"vfio-user-pci","bus":"port0","x-msg-timeout":60000,"socket":{"type":"unix","path":"'"$work/card.sock"'"}}'
}

start_card() {
    "$1" --socket "$work/card.sock" --irq "$2" > "$work/card.log" 2>&1 &
    card=$!
    for _ in $(seq 300); do
        if grep -q '^ready' "$work/card.log"; then return; fi
        sleep 0.1
    done
    fail "the card did not start"
}

stop_card() {
    kill -TERM "$card"
    wait "$card" || fail "the card ended with status $?"
    card=
}

wait_for() { # text in QEMU's output
    for _ in $(seq 600); do
        if grep -q "$1" "$work/qemu.log"; then return; fi
        echo "info pci"
        sleep 0.1
    done
}

for mode in msix msi single; do
    start_card "$1" "$mode"
    for round in 1 2; do
        : > "$work/qemu.log"
        {
            wait_for 'BAR4: 64 bit prefetchable memory at 0x[0-9a-f]* \[0x[0-9a-f]*3fffff\]'
            echo system_reset
            echo quit
        } | qemu q35,memory-backend=ram > "$work/qemu.log" 2>&1 || fail "$mode, round $round: QEMU ended with an error"
        grep -q 'PCI device 1af4:10f0' "$work/qemu.log" || fail "$mode: no card"
        grep -q 'BAR0: 32 bit memory at 0x[0-9a-f]* \[0x[0-9a-f]*fffff\]' "$work/qemu.log" || fail "$mode: BAR 0"
        grep -q 'BAR2: 64 bit prefetchable memory at 0x[0-9a-f]* \[0x[0-9a-f]*ffffff\]' "$work/qemu.log" || fail "$mode: BAR 2"
    done
    stop_card
    [ "$(grep -c '^event: attached' "$work/card.log")" = 2 ] || fail "$mode: not two clients"
    [ "$(grep -c '^event: gone' "$work/card.log")" = 2 ] || fail "$mode: a client did not leave"
    grep -q '^event: reset bus' "$work/card.log" || fail "$mode: no reset arrived"
    grep -q '^messages .* errors 0 ' "$work/card.log" || fail "$mode: errors"
done

start_card "$1" msix
: > "$work/qemu.log"
if echo quit | qemu q35 > "$work/qemu.log" 2>&1; then fail "a VM with private memory was accepted"; fi
grep -q 'GET_INFO failed' "$work/qemu.log" || fail "QEMU did not end by a refusal"
stop_card
grep -q 'memory-backend-memfd' "$work/card.log" || fail "the card does not say what is missing"
echo "all modes probed, reset and attached again; private memory refused"
