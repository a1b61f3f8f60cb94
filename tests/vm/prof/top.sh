#!/bin/sh
# top.sh: orrery-prof top beside a sample: what all tables say together is what the cards counted, and who may see what.
set -u
. /tests/guest_functions.sh
told() { awk -v card="$2" -v name="\"$3\":" '$1 == name && n++ == card { print $2 + 0 }' "$1"; }
# Of all tables: the sum of a column of the one that has `head`, for a card.
summed() {
    awk -v head="$1" -v column="$2" -v card="$3" '
        $1 == "card" { on = $2 == head }
        NF == 0 { on = 0 }
        on && $1 == card { gsub(",", "", $column); n += $column }
        END { printf "%.0f\n", n }' /tmp/top
}
tables() { grep -c '^orrery-prof top ' /tmp/top; }
until_tables() { until [ "$(tables)" -ge "$1" ]; do sleep 0.2; done; }

orrery-smi --json >/tmp/before || fail "orrery-smi"
orrery-prof top --batch 1000000 --interval 0.3 >/tmp/top 2>/tmp/error &
top=$!
until_tables 1
# While it runs it is seen, with a share of the cores: again, where it was over before top had looked.
seen() {
    what=
    grep -Eq '^ +[0-9]+ +[01] +histogram +[1-9][0-9.]* +[0-9.-]+ +[0-9.-]+ +[0-9.]+ +[0-9.]+$' /tmp/top || what="process"
    awk '$1 == "card" { on = $2 == "state" } on && $1 == 0 && $7 > 0 { found = 1 } END { exit !found }' /tmp/top || what="busy core"
    awk '$1 == "card" { on = $2 == "VRAM" } on && $1 == 1 && $5 != "-" && $5 != "0.0" { found = 1 } END { exit !found }' /tmp/top || what="link"
    [ -z "$what" ]
}
runs=0
while [ $runs -lt 3 ] || ! seen; do
    [ $runs -lt 20 ] || fail "no $what: $(cat /tmp/top)"
    histogram --cards 2 >/tmp/out 2>&1 || fail "histogram: $(cat /tmp/out)"
    runs=$((runs + 1))
done
until_tables $(($(tables) + 2))
kill $top
wait $top || fail "SIGTERM: status $?: $(cat /tmp/error)"
orrery-smi --json >/tmp/after || fail "orrery-smi"
for card in 0 1; do
    for column in 'doorbells 3 ring_packets' 'doorbells 6 vector_jobs' 'doorbells 7 copy_jobs'; do
        # shellcheck disable=SC2086 # three words
        set -- $column
        want=$(($(told /tmp/after $card "$3") - $(told /tmp/before $card "$3")))
        [ "$want" -gt 0 ] || fail "$3 of card $card: nothing happened"
        [ "$(summed "$1" "$2" $card)" = "$want" ] ||
            fail "$3 of card $card: $want, and top says $(summed "$1" "$2" $card): $(cat /tmp/top)"
    done
done

# A screen: q ends it, and what was there before comes back.
(
    tries=0
    until [ $tries = 300 ] || grep -q 'q ends' /tmp/pty 2>/tmp/error; do
        tries=$((tries + 1))
        sleep 0.2
    done
    printf q
) | TERM=xterm script -qfec 'orrery-prof top --interval 0.2' /tmp/pty >/tmp/out || fail "on a terminal: status $?: $(cat /tmp/out)"
for part in "$(printf '\033')\[?1049h" 'q ends' '^what the firmware does'; do
    grep -q "$part" /tmp/pty || fail "screen: no $part: $(cat /tmp/pty)"
done
tail -c 80 /tmp/pty | grep -q "$(printf '\033')\[?1049l" || fail "screen: $(cat /tmp/pty)"
# What a profile says of the link between the cards: what copies carried, in each direction the same on both sides; and of
# all ports.
rm -f /share/halo.prof # an earlier run's
orrery-prof record -o /tmp/halo.prof --samples 7 -- halo --quick >/tmp/out 2>&1 || fail "halo: $(cat /tmp/out)"
cp /tmp/halo.prof /share/halo.prof || fail "a share" # for vm.prof_page
orrery-prof report /tmp/halo.prof >/tmp/report || fail "report"
links=$(grep -Ec '^    port 0 +device [01] +50 +500\.000 ns +64\.0 KiB +[0-9.]+ +[0-9.]+ % +64\.0 KiB +[0-9.]+ +[0-9.]+ %$' /tmp/report)
[ "$links" = 2 ] || fail "links: $(cat /tmp/report)"
ports=$(grep -Ec '^    all ports in [0-9.]+ [mu]?s, whoever used them: sent [1-9].* received [1-9].*; [0-9 ]+ frames sent again, of [1-9][0-9 ]* messages; ' /tmp/report)
[ "$ports" = 2 ] || fail "ports: $(cat /tmp/report)"

# Mistakes.
for wrong in '--batch 0' '--interval 0' '--interval x' '--often'; do
    # shellcheck disable=SC2086 # an option and its value
    orrery-prof top $wrong >/tmp/out 2>&1
    [ $? = 2 ] || fail "$wrong: $(cat /tmp/out)"
done

# Who may use cards, but not look at others' processes; and who may not even use them.
sleep 1000 &
{
    echo 'user:x:1000:1000::/tmp:/bin/sh'
    echo 'other:x:1001:1001::/tmp:/bin/sh'
} >>/etc/passwd
sed -i 's/^\(render:.*:\)[^:]*$/\1user/' /etc/group
su user -c 'orrery-prof top --once --interval 0.1' >/tmp/out 2>&1 || fail "a user: $(cat /tmp/out)"
grep -Eq '^0 +running ' /tmp/out || fail "a user: $(cat /tmp/out)"
grep -Eq '^[0-9]+ processes of others may not be looked at' /tmp/out || fail "a user: $(cat /tmp/out)"
su other -c 'orrery-prof top --once --interval 0.1' >/tmp/out 2>&1 || fail "another: $(cat /tmp/out)"
grep -q 'its node cannot be used' /tmp/out || fail "another: $(cat /tmp/out)"
