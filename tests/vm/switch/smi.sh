#!/bin/sh
# What orrery-smi topo shows of eight cards on a fat tree, before and after one of its two spines has died at its fifth
# message to card 0's leaf. A word behind those of card 0's first place is all-ones, as any word of a peer's may be.
set -u
fail() {
    echo "smi.sh: $*" >&2
    exit 1
}
number() { grep -cE "$1" "$2"; }

lied_to=0
for card in /sys/bus/pci/drivers/orrery/*:*; do
    words=$card/links/0/switches
    cat "$words" >words || fail "$words"
    [ "$(wc -c <words)" = 32768 ] || fail "$(wc -c <words) bytes in $words"
    [ "$(od -A n -t u4 -j 2032 -N 4 words | tr -d ' ')" != 4294967295 ] || lied_to=$((lied_to + 1))
    [ "$(cat "$card/state")" = running ] || fail "$card: $(cat "$card/state"): a peer's word is no sign of a dead card"
    # Words only, and nothing at the end alone.
    dd if="$words" bs=2 count=1 of=/dev/null 2>/dev/null && fail "half a word of $words"
    dd if="$words" bs=6 skip=1 count=1 of=/dev/null 2>/dev/null && fail "a word of $words at 6"
    dd if="$words" bs=4096 skip=8 count=1 of=words 2>/dev/null || fail "the end of $words"
    [ -s words ] && fail "something behind the end of $words"
done
[ $lied_to = 1 ] || fail "$lied_to cards read an all-ones word"
orrery-smi topo --svg tree.svg >topo || fail "topo: $(cat topo)"
grep -q '^8 cards on 6 switches$' topo || fail "$(cat topo)"
grep -q '<title>8 cards on 6 switches</title>' tree.svg || fail "the picture"
[ "$(number '^<line class="up"' tree.svg)" = 16 ] || fail "links of the picture: $(cat tree.svg)"
[ "$(number '<text class="name".*>switch</text>' tree.svg)" = 6 ] || fail "switches of the picture"
grep -q 'class="down"' tree.svg && fail "something is down: $(cat tree.svg)"
orrery-smi topo --json >topo || fail "topo --json: $(cat topo)"
[ "$(number '"level": 0' topo)" = 4 ] && [ "$(number '"level": 1' topo)" = 2 ] || fail "levels: $(cat topo)"
[ "$(number '"kind": "switch",' topo)" -ge 16 ] || fail "links between switches: $(cat topo)"
for card in 0 1 2 3 4 5 6 7; do
    [ "$(number "\"device\": $card,\$" topo)" -ge 2 ] || fail "card $card: $(cat topo)"
done

tries=0
while histogram --cards 8 >out 2>&1; do
    tries=$((tries + 1))
    [ $tries -lt 8 ] || fail "the spine does not die: $(cat out)"
done
# The leaves know it when they look at their links.
tries=0
until orrery-smi topo --svg tree.svg >topo && grep -q '^8 cards on 5 switches$' topo; do
    tries=$((tries + 1))
    [ $tries -lt 50 ] || fail "a switch that has gone is shown: $(cat topo)"
    sleep 0.1
done
[ "$(number '<text class="name".*>switch</text>' tree.svg)" = 5 ] || fail "switches of the picture"
[ "$(number '^<line class="up" ' tree.svg)" -ge 12 ] || fail "links of the picture: $(cat tree.svg)"
[ "$(number '<text class="label".*>down, lost once</text>' tree.svg)" = 4 ] || fail "links that are down: $(cat tree.svg)"
orrery-smi topo --json >topo || fail "topo --json: $(cat topo)"
[ "$(number '"level": 1' topo)" = 1 ] || fail "levels: $(cat topo)"
[ "$(number '"losses": 1,' topo)" = 4 ] || fail "losses: $(cat topo)"
exit 0
