#!/bin/bash
# rounds.sh ORRERY_VM LOGS ROUNDS SEED CARDS LIMIT [OPTION...]: kills cards' processes at random instants between the loading
# of the driver and the end of a sample's work, one a round. What has to hold in each round: the sample ends within LIMIT
# seconds and names the cause, programs on all other cards go on, no other card ends, the driver unloads. QEMU and the guest
# live through all rounds of a VM, which begins with CARDS cards and ends with one. The same SEED gives the same order of
# samples, cards and instants. OPTIONs are orrery-vm's.
#
# LIMIT is meant for a machine that does nothing else. What other processes (and other guests of the host's host) take of its
# CPUs while a round lasts is measured, and LIMIT counts of the rest: of CPUs of which others took three quarters a second is
# there after four. Both times are told, and such a round is marked.
set -euo pipefail
vm=$1 logs=$2 rounds=$3 seed=$4 cards=$5 limit=$6
shift 6
here=$(dirname -- "${BASH_SOURCE[0]}")
samples=("histogram" "cholesky" "cholesky --tiles 12 --size 48")
declare -A span # of a sample: milliseconds from the order to the end of the work; measured as it goes
# shellcheck source=tests/system/runtime/hand.sh
. "$here/../../system/runtime/hand.sh"
rm -rf -- "$logs"
mkdir -p -- "$logs"
RANDOM=$seed
# Each card is linked with each other one, as the samples want it; the standard SKU has ports for five cards.
sed '/^[[]link/,$ s/^ports = .*/ports = [8, "assumed", "for the samples"]/' "$here/../../../emulator/skus/orrery-1.toml" >"$logs/sku.toml"
done_rounds=0

ms() { echo $((${EPOCHREALTIME/./} / 1000)); }

# Jiffies: all, idle, and what this VM's processes have used. Those of cards that died are in their parent's sum.
jiffies() {
    local pid stat
    {
        head -n 1 /proc/stat
        for pid in $run $pids $qemu; do
            stat=$(cat "/proc/$pid/stat" 2>/dev/null) || continue
            echo "ours $pid ${stat##*) }"
        done
    } | awk '$1 == "cpu" { for (i = 2; i <= 9; i++) all += $i; idle = $5 + $6 }
        $1 == "ours" { ours += $14 + $15 + ($2 == '"$run"' ? $16 + $17 : 0) }
        END { print all, idle, ours }'
}
# The share of the CPUs that others took from one reading to the other, in percent.
taken() { awk -v a="$1" -v b="$2" 'BEGIN { split(a, x); split(b, y); all = y[1] - x[1]
    s = all > 0 ? (all - (y[2] - x[2]) - (y[3] - x[3])) / all : 0; printf "%d", 100 * (s < 0 ? 0 : s > .95 ? .95 : s) }'; }

fail() {
    echo "rounds.sh: round $done_rounds: $*" >&2
    return 1
}
lives() { # PID; not for a dead process that nobody has asked after yet
    local stat
    stat=$(cat "/proc/$1/stat" 2>/dev/null) && case ${stat##*) } in Z* | X*) false ;; esac
}
wait_for() { # FILE
    until [ -e "$1" ]; do
        kill -0 "$run" 2>/dev/null || return 1
        sleep 0.01
    done
}

# Chance may have it that no card was at work when it died, most likely in a few rounds of short work: then there are
# up to twice as many more.
more() {
    [ "$done_rounds" -ge "$rounds" ] || return 0
    [ "$done_rounds" -lt $((rounds * 3)) ] && ! grep -qv '^[0-9]* 0 ' "$logs/times"
}

one_vm() { # NUMBER [OPTION...]
    local alive=() pids="" qemu="" number=0 pid name=$1
    shift
    rm -rf -- "${share:?}"/*
    "$vm" --cards "$cards" --sku "$logs/sku.toml" --topology mesh --memory 2G --timeout $((120 + cards * 90)) --logs "$logs/vm$name" --allow-card-exit --share "$share" \
        --file "$here/guest.sh:/tests/guest.sh" --file "$here/../kmod/guest_functions.sh:/tests/guest_functions.sh" \
        --file "$(dirname -- "$vm")/kmod_work:/usr/local/bin/kmod_work" --file "$(dirname -- "$vm")/cholesky:/usr/local/bin/cholesky" \
        --file "$(dirname -- "$vm")/histogram:/usr/local/bin/histogram" "$@" -- sh /tests/guest.sh >"$logs/vm$name.out" 2>&1 &
    run=$!
    for ((i = 0; i < cards; i++)); do alive+=("$i"); done
    while [ ${#alive[@]} -gt 0 ] && more; do
        local pick=$((RANDOM % ${#alive[@]})) sample=${samples[RANDOM % ${#samples[@]}]}
        local delay=$(((RANDOM * 32768 + RANDOM) % ${span[$sample]:-4000})) victim=${alive[$pick]}
        local began killed early ended before after status took others scaled
        echo "$victim $sample" >"$share/round.new"
        mv "$share/round.new" "$share/round.$number"
        wait_for "$share/go.$number" || return 1
        began=$(ms)
        [ -n "$pids" ] || pids=$(sed -n '/"cards"/,$ s/.*"pid": \([0-9]*\).*/\1/p' "$logs/vm$name/run.json")
        [ -n "$qemu" ] || qemu=$(sed -n 's/.*"qemu": \([0-9]*\).*/\1/p' "$logs/vm$name/run.json")
        sleep "$((delay / 1000)).$(printf %03d $((delay % 1000)))"
        before=$(jiffies)
        early=
        [ ! -e "$share/end.$number" ] || early=yes
        killed=$(ms)
        pid=$(echo "$pids" | sed -n "$((victim + 1))p")
        { lives "$pid" && kill -KILL "$pid"; } || { fail "card $victim was not there any more"; return 1; }
        : >"$share/killed.$number"
        wait_for "$share/end.$number" || return 1
        ended=$(ms)
        took=$((ended - killed))
        [ -z "$early" ] || took=0
        after=$(jiffies)
        others=$(taken "$before" "$after")
        wait_for "$share/done.$number" || return 1
        status=$(cat "$share/end.$number")
        scaled=$((took * (100 - others) / 100))
        echo "round $done_rounds: '$sample' on ${#alive[@]} cards, card $victim died after $delay ms: status $status" \
            "$took ms later$([ "$others" -lt 10 ] || echo " (others took $others % of the CPUs: $scaled ms)"): $(cat "$share/done.$number")"
        echo "${#alive[@]} $status $took $scaled" >>"$logs/times"
        unset "alive[$pick]"
        alive=("${alive[@]}")
        for i in "${alive[@]}"; do
            lives "$(echo "$pids" | sed -n "$((i + 1))p")" || { fail "card $i ended too, when card $victim died: $logs/vm$name/card$i.log"; return 1; }
        done
        # Work that did not need the card any more takes its own time to its end.
        [ "$status" = 0 ] || [ "$scaled" -le $((limit * 1000)) ] || { fail "told after $scaled ms, which is more than $limit s"; return 1; }
        # The next instants spread over what the work takes here and now, and a little beyond.
        if [ "$status" = 0 ]; then
            span[$sample]=$(((ended - began) * 12 / 10))
            [ "${span[$sample]}" -ge 500 ] || span[$sample]=500
            [ "${span[$sample]}" -le 20000 ] || span[$sample]=20000
        fi
        number=$((number + 1))
        done_rounds=$((done_rounds + 1))
    done
    : >"$share/enough"
    wait "$run" || return 1
    run=
}

table() { # of the times in $logs/times, by the number of cards
    echo "cards  rounds  at work  median  95 %   most  (ms from the death to the end; \"of what is left\": of CPUs that others use too)"
    local n
    for n in $(cut -d ' ' -f 1 "$logs/times" | sort -nu) all; do
        local times
        times=$(awk -v n="$n" '(n == "all" || $1 == n) && $2 != 0 { print $3, $4 }' "$logs/times")
        echo "$n $(awk -v n="$n" 'n == "all" || $1 == n' "$logs/times" | wc -l) $(echo "$times" | grep -c .)" \
            "$(echo "$times" | cut -d ' ' -f 1 | quantiles) of what is left: $(echo "$times" | cut -d ' ' -f 2 | quantiles)"
    done
}
quantiles() { sort -n | awk 'NF { t[++n] = $1 } END { if (n) printf "%d %d %d", t[int((n + 1) / 2)], t[int(n * .95 + .999)], t[n]; else printf "- - -" }'; }

number=0
while more; do
    if ! one_vm $number "$@"; then
        [ -z "$run" ] || { kill "$run" 2>/dev/null || true; wait "$run" || true; }
        run=
        cat "$logs/vm$number.out" >&2
        [ ! -e "$share/core" ] || cp --sparse=always "$share/core" "$logs/core"
        [ ! -e "$logs/times" ] || table
        echo "rounds.sh: round $done_rounds with seed $seed failed; logs: $logs" >&2
        exit 1
    fi
    number=$((number + 1))
done
table
late=$(awk '$2 != 0' "$logs/times" | wc -l)
echo "$done_rounds rounds with seed $seed: in $late of them the work had not ended when the card died"
[ "$late" -gt 0 ] || { echo "rounds.sh: no round killed a card that was at work" >&2; exit 1; }
