#!/bin/bash
# rounds.sh ORRERY_VM LOGS ROUNDS SEED CARDS LIMIT: kills cards' processes at random instants between the loading of the
# driver and the end of a sample's work, one a round. What has to hold in each round: the sample ends within LIMIT seconds
# and names the cause, a program on another card goes on, the driver unloads. QEMU and the guest live through all rounds of
# a VM, which begins with CARDS cards and ends with one. The same SEED gives the same order of samples, cards and instants.
set -euo pipefail
vm=$1 logs=$2 rounds=$3 seed=$4 cards=$5 limit=$6
here=$(dirname -- "${BASH_SOURCE[0]}")
samples=("histogram" "cholesky" "cholesky --tiles 12 --size 48")
share=$(mktemp -d)
run=
finish() {
    [ -z "$run" ] || kill "$run" 2>/dev/null || true
    rm -rf -- "$share"
}
trap finish EXIT
rm -rf -- "$logs"
mkdir -p -- "$logs"
RANDOM=$seed
# Each card is linked with each other one, as the samples want it; the standard SKU has ports for five cards.
sed '/^[[]link/,$ s/^ports = .*/ports = 8/' "$here/../../../emulator/skus/orrery-1.toml" >"$logs/sku.toml"
links=
for ((a = 0; a < cards; a++)); do
    for ((b = a + 1; b < cards; b++)); do links+="[ \"card$a:$((b - 1))\", \"card$b:$a\" ], "; done
done
echo "links = [ ${links%, } ]" >"$logs/mesh.toml"
span=4000 # milliseconds from the order to the end of the work; measured as it goes
done_rounds=0
late=0

one_vm() { # NUMBER
    local alive=() pids number=0
    rm -rf -- "${share:?}"/*
    "$vm" --cards "$cards" --sku "$logs/sku.toml" --topology "$logs/mesh.toml" --memory 2G --timeout $((60 + cards * 60)) --logs "$logs/vm$1" --allow-card-exit --share "$share" \
        --file "$here/guest.sh:/tests/guest.sh" --file "$here/../kmod/guest_functions.sh:/tests/guest_functions.sh" \
        --file "$(dirname -- "$vm")/kmod_work:/usr/local/bin/kmod_work" --file "$(dirname -- "$vm")/cholesky:/usr/local/bin/cholesky" \
        --file "$(dirname -- "$vm")/histogram:/usr/local/bin/histogram" -- sh /tests/guest.sh "$limit" >"$logs/vm$1.out" 2>&1 &
    run=$!
    for ((i = 0; i < cards; i++)); do alive+=("$i"); done
    while [ ${#alive[@]} -gt 0 ] && [ "$done_rounds" -lt "$rounds" ]; do
        local pick=$((RANDOM % ${#alive[@]})) sample=${samples[RANDOM % ${#samples[@]}]}
        local delay=$(((RANDOM * 32768 + RANDOM) % span)) victim
        victim=${alive[$pick]}
        echo "$victim $sample" >"$share/round.new"
        mv "$share/round.new" "$share/round.$number"
        wait_for "$share/go.$number" "$1" || return 1
        [ -n "${pids-}" ] || pids=$(sed -n '/"cards"/,$ s/.*"pid": \([0-9]*\).*/\1/p' "$logs/vm$1/run.json")
        sleep "$((delay / 1000)).$(printf %03d $((delay % 1000)))"
        kill -KILL "$(echo "$pids" | sed -n "$((victim + 1))p")"
        : >"$share/killed.$number"
        wait_for "$share/done.$number" "$1" || return 1
        local began end status
        read -r began end status <"$share/done.$number"
        # The next instants spread over what the work takes here and now, and a little beyond.
        [ "$status" != 0 ] || span=$(awk "BEGIN { t = ($end - $began) * 1200; print int(t < 500 ? 500 : t > 20000 ? 20000 : t) }")
        [ "$status" = 0 ] || late=$((late + 1))
        unset "alive[$pick]"
        alive=("${alive[@]}")
        number=$((number + 1))
        done_rounds=$((done_rounds + 1))
    done
    : >"$share/enough"
    wait "$run" || return 1
    run=
}
wait_for() { # FILE VM
    until [ -e "$1" ]; do
        kill -0 "$run" 2>/dev/null || return 1
        sleep 0.02
    done
}

number=0
while [ "$done_rounds" -lt "$rounds" ]; do
    if ! one_vm $number; then
        wait "$run" || true
        run=
        cat "$logs/vm$number.out" >&2
        echo "rounds.sh: round $done_rounds with seed $seed failed; logs: $logs" >&2
        exit 1
    fi
    grep '^round' "$logs/vm$number.out"
    number=$((number + 1))
done
echo "$done_rounds rounds with seed $seed: in $late of them the work had not ended when the card died"
[ "$late" -gt 0 ] || { echo "rounds.sh: no round killed a card that was at work" >&2; exit 1; }
