#!/bin/sh
# tools.sh: two tools in a program that works on a card, a recorder and a witness: both are told all. And one that
# crashes: what the other one had is kept, and neither the card nor another process knows of it.
set -eu
fail() {
    echo "tools.sh: $*" >&2
    exit 1
}
witness=/root/witness.so
column() { # NAME of FILE, summed; of rows alone: how many
    awk -F, -v name="$1" '{ sub(/\r$/, "") } NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        { sum += name == "" ? 1 : $at[name] } END { printf "%d\n", sum }' "$2"
}
# Both ask for the same samples, of counters and of vector cores.
WITNESS_SAMPLES=6000 WITNESS_PC=1000 ORR_PROF_TOOL=$witness \
    orrery-prof record -o /tmp/two.prof --samples 7 --pc 1 -- vector_basics --quick >/tmp/out 2>/tmp/said || fail "$(cat /tmp/said)"
cat /tmp/said
orrery-prof export /tmp/two.prof --csv /tmp/two
grep '^witness: calls' /tmp/said >/tmp/witness || fail "it heard nothing"
read -r _ _ _ _ launches _ work _ samples _ pcs _ lost </tmp/witness
[ "$lost" = 0 ] || fail "some were lost"
[ "$(column '' /tmp/two/lost.csv)" = 0 ] || fail "some were lost: $(cat /tmp/two/lost.csv)"
[ "$work" -gt 20 ] && [ "$samples" -gt 20 ] && [ "$pcs" -gt 20 ] || fail "too few: $(cat /tmp/witness)"
# Of other calls each hears those that the other one makes.
[ "$(grep -c ',orrLaunchKernel,' /tmp/two/call.csv)" = "$launches" ] || fail "calls: $(grep -c ',orrLaunchKernel,' /tmp/two/call.csv) and $launches"
[ "$(column '' /tmp/two/work.csv)" = "$work" ] || fail "work: $(column '' /tmp/two/work.csv) and $work"
[ "$(column count /tmp/two/pc_sample.csv)" = "$pcs" ] || fail "pcs: $(column count /tmp/two/pc_sample.csv) and $pcs"
moments=$(tail -n +2 /tmp/two/sample.csv | cut -d, -f3 | sort -u | wc -l)
[ "$moments" = "$samples" ] || fail "samples: $moments and $samples"
# What the library told the witness of ranges is what the profile adds up, counter by counter; and of a range of the
# witness's own around all of it, which was open when the program's thread ended.
WITNESS_RANGES=1 ORR_PROF_TOOL=$witness \
    orrery-prof record -o /tmp/ranges.prof --counters -- vector_basics --quick >/tmp/out 2>/tmp/said || fail "$(cat /tmp/said)"
grep -v '^witness range,' /tmp/said || true
grep -Eq '^witness: .* lost 0$' /tmp/said || fail "ranges: $(cat /tmp/said)"
orrery-prof export /tmp/ranges.prof --csv /tmp/ranges
sed -n 's/^witness range,//p' /tmp/said | sort >/tmp/library
awk -F, '{ sub(/\r$/, "") } FNR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    FILENAME ~ /range.csv/ { name[$at["range"]] = $at["name"] "," (1 - $at["open"]); next }
    { sub(/^[0-9]+/, name[$1]); print }' /tmp/ranges/range.csv /tmp/ranges/range_work.csv | sort >/tmp/profile
cat /tmp/profile
cmp /tmp/library /tmp/profile || fail "ranges: $(diff /tmp/library /tmp/profile)"
grep -Eq '^all,0,[1-9][0-9]*,9,' /tmp/library || fail "the range around all: $(cat /tmp/library)"
[ "$(grep -Ec '^(saxpy|reduction|scan|transpose|softmax|layer norm),1,[1-9]' /tmp/library)" = 6 ] || fail "too few ranges: $(cat /tmp/library)"
# And nothing of that took model time.
orrery-prof compare /tmp/two.prof /tmp/ranges.prof >/tmp/changes
[ "$(grep -Ec '^  (saxpy|scan_parts|transpose|softmax|layer_norm) +1 +1 .* exactly equal$' /tmp/changes)" = 5 ] || fail "model time: $(cat /tmp/changes)"
# With others each: who comes second is told who has what, and the first one's go on.
WITNESS_SAMPLES=9000 WITNESS_PC=2000 ORR_PROF_TOOL=$witness \
    orrery-prof record -o /tmp/other.prof --samples 7 --pc 1 -- vector_basics --quick >/tmp/out 2>/tmp/said || fail "$(cat /tmp/said)"
cat /tmp/said
# The tool that started last is told first of a call's end, so the witness asks first.
grep -Eq "^orrery-prof: no samples of device 0: tool 'witness' has samples of device 0's counters, [0-9]+ of them each 9000 ns" /tmp/said || fail "samples"
grep -Eq "^orrery-prof: no samples of device 0's vector cores: tool 'witness' has samples of device 0's vector cores \(each 2000 ns\)" /tmp/said || fail "vector cores"
grep -Eq '^witness: calls [0-9]+ launches 9 work [0-9]+ samples [1-9][0-9]* pcs [1-9][0-9]* lost 0$' /tmp/said || fail "the first one's have gone"
# The guide's own, without a recorder: all of a program's kernels.
ORR_PROF_TOOL=/root/mine.so vector_basics --quick >/tmp/out 2>/tmp/said || fail "$(cat /tmp/said)"
grep -Eq '^mine: 9 kernels, [1-9][0-9]* us of model time$' /tmp/said || fail "the guide's tool: $(cat /tmp/said)"
grep -Eq '^mine: orr[A-Za-z]+ [1-9][0-9]* times, [1-9][0-9]* us$' /tmp/said || fail "the guide's tool: $(cat /tmp/said)"
# A tool crashes, while another process works on the card.
for place in orrLaunchKernel stop; do
    vector_basics --quick >/tmp/beside 2>&1 &
    beside=$!
    status=0
    WITNESS_CRASH=$place ORR_PROF_TOOL=$witness \
        orrery-prof record -o /tmp/crash.prof --counters -- vector_basics --quick >/tmp/out 2>/tmp/said || status=$?
    cat /tmp/said
    [ $status = 139 ] || fail "$place: status $status"
    grep -q '^orrery-prof: the command was ended by signal 11 (Segmentation fault), it or a tool in it: ' /tmp/said || fail "$place: no line"
    wait $beside || fail "$place: another process: $(cat /tmp/beside)"
    orrery-prof stat /tmp/crash.prof >/tmp/stat || fail "$place: it cannot be read"
    grep -q 'it did not end by exit()' /tmp/stat || fail "$place: $(cat /tmp/stat)"
    # Its calls until then: the launch had not ended for the recorder, and at the end all had.
    launches=$(awk '$1 == "orrLaunchKernel" { print $2 }' /tmp/stat)
    [ "${launches:-0}" = "$([ $place = stop ] && echo 9 || echo 0)" ] || fail "$place: $launches launches"
    grep -Eq '^  orrMalloc +[1-9]' /tmp/stat || fail "$place: $(cat /tmp/stat)"
done
grep -Eq '^  saxpy +1 ' /tmp/stat || fail "at its end all work had been told: $(cat /tmp/stat)"
orrery-smi >/tmp/smi || fail "orrery-smi"
vector_basics --quick >/tmp/out 2>&1 || fail "the card: $(cat /tmp/out)"
# A user records his own work, and not what the whole card does.
echo 'user:x:1000:1000::/tmp:/bin/sh' >>/etc/passwd
sed -i 's/^\(render:.*:\)[^:]*$/\1user/' /etc/group
su user -c 'cd /tmp && orrery-prof record -o user.prof --counters --samples 7 --pc 3 -- vector_basics --quick' >/tmp/out 2>/tmp/said || fail "a user: $(cat /tmp/said)"
cat /tmp/said
[ "$(grep -c 'no samples of device' /tmp/said)" = 1 ] || fail "what a user is told"
grep -q "show what others do there, and need CAP_PERFMON" /tmp/said || fail "what a user is told"
orrery-prof export /tmp/user.prof --csv /tmp/user
[ "$(column '' /tmp/user/sample.csv)" = 0 ] || fail "a user has samples"
[ "$(column '' /tmp/user/work_counters.csv)" -gt 8 ] && [ "$(column '' /tmp/user/pc_sample.csv)" -gt 0 ] || fail "a user has not his own"
