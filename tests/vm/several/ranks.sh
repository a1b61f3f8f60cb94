#!/bin/bash
# ranks.sh ORRERY_RUN LOGS: four ranks on two VMs, in a ring of four cards. What they are told, what the drivers show of
# cards that are not theirs, and what becomes of all when one fails.
set -uo pipefail
run=$1 logs=$2
fail() {
    echo "ranks.sh: $*" >&2
    [ -e "$logs/out" ] && cat "$logs/out" "$logs/err" >&2
    exit 1
}
rm -rf "$logs"
mkdir -p "$logs"
# shellcheck disable=SC2016 # for the guests' shells
ranks='
echo "rank $ORR_RANK of $ORR_RANKS: $ORR_LOCAL_RANK of $ORR_LOCAL_RANKS on VM $ORR_VM of $ORR_VMS, $ORR_TOKEN"
if [ "$ORR_LOCAL_RANK" = 0 ]; then
    sed "s/^/topology: /" "$ORR_TOPOLOGY"
    for card in /sys/bus/pci/drivers/orrery/0*; do
        echo "node $(cat "$card/node") links to $(cat "$card/links/0/owner") $(cat "$card/links/1/owner") $(cat "$card/links/2/owner")"
    done
fi
echo "that is all"
if [ "$ORR_RANK" = 3 ]; then
    until [ -e /share/end ]; do sleep 0.1; done
    echo "bad end" >&2
    exit 7
fi
sleep 1000'
mkdir "$logs/share"
"$run" -n 4 --vms 2 --topology ring --memory 512M --timeout 240 --share "$logs/share" --logs "$logs" -- sh -c "$ranks" \
    >"$logs/out" 2>"$logs/err" &
running=$!
# Their lines are on their way for some time; with rank 3 the VM of the first two ends.
until [ "$(grep -cs '^[0-3]: that is all$' "$logs/out")" = 4 ]; do
    kill -0 $running 2>/dev/null || break
    sleep 0.1
done
: >"$logs/share/end"
wait $running
status=$?
[ $status = 7 ] || fail "status $status"
for rank in 0 1 2 3; do
    grep -qE "^$rank: rank $rank of 4: $((rank % 2)) of 2 on VM $((rank / 2)) of 2, orrg1-dir-[0-9a-f]{32}-[0-9a-f]{32}-/share$" "$logs/out" ||
        fail "rank $rank"
done
[ "$(grep -o 'orrg1-.*' "$logs/out" | sort -u | wc -l)" = 1 ] || fail "ranks have several tokens"
# Port 0 leads on, port 1 back: in each VM from the first card to the second, and away from both ends.
grep -qx '0: node 1 links to own foreign none' "$logs/out" || fail "card 0"
grep -qx '0: node 2 links to foreign own none' "$logs/out" || fail "card 1"
grep -qx '2: node 512 links to own foreign none' "$logs/out" || fail "card 2"
grep -qx '2: node 513 links to foreign own none' "$logs/out" || fail "card 3"
# The same file in both, which orrery-vm takes as it is: the ring that was asked for.
for rank in 0 2; do
    sed -n "s/^$rank: topology: //p" "$logs/out" >"$logs/topology$rank.toml"
    [ "$(tr -d ' \n' <"$logs/topology$rank.toml")" = "cards=4links=[[\"card0:0\",\"card1:1\"],[\"card1:0\",\"card2:1\"],[\"card2:0\",\"card3:1\"],[\"card0:1\",\"card3:0\"],]" ] ||
        fail "the topology of rank $rank: $(cat "$logs/topology$rank.toml")"
    "$(dirname -- "$run")/orrery-vm" --topology "$logs/topology$rank.toml" --picture "$logs/topology.svg" || fail "it does not parse"
    grep -q '<title>4 cards in a ring</title>' "$logs/topology.svg" || fail "the picture"
done
grep -qx '3: bad end' "$logs/err" || fail "no word of rank 3"
grep -q '^orrery-run: rank 3 (VM 1) ended with status 7, the first to fail here: the others are ended$' "$logs/err" ||
    fail "who failed first"
grep -q '^orrery-vm: vm1 was the first to fail, with status 7; the others were stopped$' "$logs/err" || fail "which VM"
grep -q '^orrery-vm: stopped by signal 15$' "$logs/err" || fail "VM 0 was not stopped"
[ -s "$logs/vm0/card1.log" ] && [ -s "$logs/vm1/card2.log" ] || fail "logs"
