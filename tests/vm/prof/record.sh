#!/bin/sh
# A sample, recorded: its results and status are as ever, and each of its calls is in the profile.
set -eu
rm -f /share/page.html /share/lines.prof # an earlier run's
orrery-prof record -o /tmp/sample.prof -- vector_basics --quick
orrery-prof stat /tmp/sample.prof > /tmp/stat
cat /tmp/stat
grep -Eq '^  orrLaunchKernel +9 ' /tmp/stat
# Each launch is a kernel on the card, by its name, and begins and ends there.
[ "$(sed '1,/device 0, model time/d' /tmp/stat | grep -Ec '^  (saxpy|reduce|scan_parts|scan_totals|scan_add|transpose|softmax|layer_norm) +[12] ')" = 8 ]
grep -Eq '^  copy +[0-9]+ ' /tmp/stat
grep -Eq '^  orrStreamDestroy +1 ' /tmp/stat
# `!` would not end the script.
if grep -E 'told too late|did not end by exit' /tmp/stat; then exit 1; fi
# What the card is and could do, what copies moved and between whose memories, and how much memory there was.
orrery-prof report /tmp/sample.prof > /tmp/report
cat /tmp/report
grep -Eq '^  device 0: Orrery 1, 0000:[0-9a-f:.]+, ' /tmp/report
grep -Eq '^    kernels +\[#+\.+\] +[0-9.]+ % .* of 8 vector cores at work' /tmp/report
# When the card did it by the host's clock, and how exactly that is known.
grep -Eq "^    clock: by the host's to [0-9.]+ [mu]?s .*, [0-9.]+ [mu]?s at most$" /tmp/report
grep -Eq '^    memory: 3\.5 MiB of ' /tmp/report
grep -Eq '^    host to device +12 +3\.3 MiB .* 32 +[1-9][0-9]\.' /tmp/report
grep -Eq '^    device to host +10 +2\.8 MiB ' /tmp/report
grep -Eq '^    saxpy +1 .* 32 ' /tmp/report
grep -Eq '^    at .* host +[a-z_]+ +orr(LaunchKernel|Memcpy)$' /tmp/report
# It copies, computes and copies, one after the other: which is worse, that or the host, is that one's matter.
orrery-prof explain /tmp/sample.prof > /tmp/why
cat /tmp/why
grep -Eq '^  device 0, .*: limited most by (copies beside which no kernel runs|the host)$' /tmp/why
orrery-prof export /tmp/sample.prof --csv /tmp/tables
grep -Eq '^[0-9]+,0,0,[0-9]+,[0-9]+,saxpy,kernel,done,' /tmp/tables/work.csv
orrery-prof export /tmp/sample.prof --sqlite /tmp/sample.db
head -c 15 /tmp/sample.db | grep -q 'SQLite format 3'
# Of a second run kernels take exactly the same model time.
orrery-prof record -o /tmp/again.prof -- vector_basics --quick
orrery-prof compare /tmp/sample.prof /tmp/again.prof > /tmp/changes
cat /tmp/changes
[ "$(grep -Ec '^  (saxpy|scan_parts|transpose|softmax|layer_norm) +1 +1 .* exactly equal$' /tmp/changes)" = 5 ]
orrery-prof trace /tmp/sample.prof -o /tmp/trace.json
[ "$(grep -o '"name":"orrLaunchKernel"' /tmp/trace.json | wc -l)" = 9 ]
[ "$(grep -o '"ph":"f"' /tmp/trace.json | wc -l)" -ge 9 ]
# An arrow leads to each copy's call that waited for it, of which the host knows when it found that done.
[ "$(grep -o '"ph":"f","cat":"done"' /tmp/trace.json | wc -l)" -ge 10 ]
orrery-prof trace /tmp/sample.prof --perfetto -o /tmp/trace.pb
[ -s /tmp/trace.pb ]
# The same with what each kernel and copy did, and the cards' counters over time: the sample does what it did.
orrery-prof record -o /tmp/counted.prof --counters --samples 7 -- vector_basics --quick
orrery-prof stat /tmp/counted.prof > /tmp/stat
grep -Eq '^  orrLaunchKernel +9 ' /tmp/stat
cat /tmp/stat
grep -q vector_instructions /tmp/counted.prof
# The card's counters with what follows from them, and what was counted for its work alone, which is all that ran.
grep -Eq "^  device 0: the card's counters in [0-9.]+ [mu]s of model time, by [0-9 ]+ samples$" /tmp/stat
grep -Eq '^ +[0-9 ]+  ps +core_busy_ps +# +[0-9.]+ %  core_utilisation$' /tmp/stat
grep -Eq '^ +[0-9 ]+  bytes +copy_bytes +# +[0-9.]+ GB/s  copy_bandwidth$' /tmp/stat
grep -Eq '^  device 0: counted for its 9 kernels, [1-9][0-9]* copies and fills$' /tmp/stat
sed '1,/counted for its/d' /tmp/stat | grep -Eq '^ +[0-9 ]+  instructions +vector_instructions +# +[0-9.]+ instructions/cycle  vector_ipc$'
if grep -q vector_instructions /tmp/sample.prof; then exit 1; fi
# The host opens it in a browser: vm.prof_page.
orrery-prof html /tmp/counted.prof -o /share/page.html
orrery-prof trace /tmp/counted.prof -o /tmp/trace.json
[ "$(grep -o '"ph":"C","name":"copy_bytes"' /tmp/trace.json | wc -l)" -gt 5 ]
[ "$(wc -c < /tmp/counted.prof)" -gt "$(wc -c < /tmp/sample.prof)" ]
# What cards count while a command runs is what they say before and behind it; its status is its own.
counter() { awk -v name="\"$2\":" '$1 == name { print $2 + 0; exit }' "$1"; }
orrery-smi --json >/tmp/before
orrery-prof stat -o /tmp/stat -- vector_basics --quick
orrery-smi --json >/tmp/after
cat /tmp/stat
grep -q "^What the cards counted for 'vector_basics --quick'" /tmp/stat
grep -Eq '^  device 0: .*, 0000:[0-9a-f:.]+, [0-9.]+ [mu]s of model time$' /tmp/stat
for name in vector_instructions copy_bytes vector_jobs pcie_read_bytes; do
    want=$(($(counter /tmp/after $name) - $(counter /tmp/before $name)))
    [ "$want" -gt 0 ]
    [ "$(awk -v name=$name '{ for (i = 1; i <= NF; i++) if ($i == name) { n = ""; for (j = 1; j < i - 1; j++) n = n $j; print n } }' /tmp/stat)" = $want ]
done
grep -Eq '  vector_ipc$' /tmp/stat
status=0
orrery-prof stat -- sh -c 'exit 7' 2>/dev/null || status=$?
[ $status = 7 ]
# And with where vector cores are: lines of its kernels, and still the same model time.
orrery-prof record -o /tmp/pc.prof --pc 0.2 -- vector_basics --quick
cp /tmp/pc.prof /share/lines.prof # for vm.prof_page
orrery-prof report /tmp/pc.prof > /tmp/report
cat /tmp/report
grep -Eq '^    lines of kernels +kernel +samples +of all +at what$' /tmp/report
grep -Eq '^    kernels\.cc:[0-9]+ +(softmax|layer_norm|scan_parts|saxpy|transpose) +[0-9,]+ +[0-9.]+ % +(computing|latency|bandwidth) [0-9]+ %' /tmp/report
orrery-prof export /tmp/pc.prof --csv /tmp/pcs
grep -Eq '^0,0,[0-7],[0-9]+,[0-9]+,[0-9]+,saxpy,[0-9]+,[0-9]+,saxpy,[^,]*/kernels\.cc:[0-9]+,[a-z]+,[1-9][0-9]*,200000' /tmp/pcs/pc_sample.csv
orrery-prof compare /tmp/sample.prof /tmp/pc.prof > /tmp/changes
cat /tmp/changes
[ "$(grep -Ec '^  (saxpy|scan_parts|transpose|softmax|layer_norm) +1 +1 .* exactly equal$' /tmp/changes)" = 5 ]
# Samples of the same counters at another period are a set of their own, as the page has it.
orrery-prof record -o /tmp/periods.prof --samples 20 -- umd_vm_test --gtest_filter=ProfileOfOne.SamplesHaveTheirPeriod 2>/tmp/said
grep -Eq '^orrery-prof: no samples of device 0: the program, or a library of it, has samples .* 2 of them each 1000 ns' /tmp/said
orrery-prof html /tmp/periods.prof -o /tmp/periods.html
grep -q '"period":1000000,' /tmp/periods.html
grep -q '"period":5000000,' /tmp/periods.html
# A range has what was counted for its kernels, and nothing else: that of saxpy, and scan's three together.
orrery-prof export /tmp/counted.prof --csv /tmp/counted
counted() { # COLUMN of FILE, of rows whose column NAMED is in the list
    awk -F, -v column="$2" -v named="$3" -v list=" $4 " '{ sub(/\r$/, "") } NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        index(list, " " $at[named] " ") { sum += $at[column]; n++ } END { printf "%d %d\n", n, sum }' "$1"
}
rows() { awk -F, -v column="$2" -v name="$3" '{ sub(/\r$/, "") } NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    $at["name"] == name { printf " %s", $at[column] }' "$1"; }
for column in flops_f32 vram_read vram_written instructions latency_ps; do
    saxpy=$(counted /tmp/counted/work_counters.csv $column work "$(rows /tmp/counted/work.csv work saxpy)")
    [ "$saxpy" = "$(counted /tmp/counted/range_work.csv $column range "$(rows /tmp/counted/range.csv range saxpy)")" ]
    [ "$column" = latency_ps ] || [ "${saxpy#* }" -gt 0 ]
    scan=$(counted /tmp/counted/work_counters.csv $column work "$(for one in parts totals add; do rows /tmp/counted/work.csv work scan_$one; done)")
    [ "${scan#* }" = "$(counted /tmp/counted/range_work.csv $column range "$(rows /tmp/counted/range.csv range scan)" | cut -d' ' -f2)" ]
done
# And what the process had done, and each of its streams, adds up to that of all work.
whole() { awk -F, -v column="$2" '{ sub(/\r$/, "") } NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    { sum += $at[column] } END { printf "%d\n", sum }' "/tmp/counted/$1.csv"; }
for column in busy_ps vram_read moved instructions; do
    all=$(whole work_counters $column)
    [ "$all" -gt 0 ] && [ "$(whole process_work $column)" = "$all" ] && [ "$(whole stream_work $column)" = "$all" ]
done
orrery-prof report /tmp/counted.prof >/tmp/report
sed -n '/^  ranges/,/^$/p' /tmp/report
grep -Eq '^  scan +1 +3 +0 ' /tmp/report
# And with each instruction of one core, one after the other.
orrery-prof record -o /tmp/steps.prof --trace-core 0:0:0-100000 -- vector_basics --quick
orrery-prof instructions /tmp/steps.prof > /tmp/steps
[ "$(grep -Ec '^  0 +0 +[0-9]+ +[0-9,]+ +(computing|latency|bandwidth|launch) +(saxpy|reduce|scan_parts|softmax|transpose) +[0-9,]+ +0x[0-9a-f]+ +[a-z_]+\.(cc|h):[0-9]+ *$' /tmp/steps)" -gt 1000 ]
orrery-prof compare /tmp/sample.prof /tmp/steps.prof > /tmp/changes
[ "$(grep -Ec '^  (saxpy|scan_parts|transpose|softmax|layer_norm) +1 +1 .* exactly equal$' /tmp/changes)" = 5 ]
# Signals, with the waits that they end, and marks in streams: in each of the commands, and no work of anybody's.
orrery-prof record -o /tmp/marks.prof -- umd_vm_test --gtest_filter=StreamEvents.ASignalIsBetween*
orrery-prof report /tmp/marks.prof > /tmp/report
cat /tmp/report
grep -Eq '^    signals of +by +count +waits ended' /tmp/report
grep -Eq '^    events and what has no name +a stream on device 0 +[1-9][0-9]* +[1-9]' /tmp/report
grep -Eq '^    copied +a stream on device 0 +[0-9.]+ [mu]s' /tmp/report
grep -Eq '^    gone on +a stream on device 0 +[0-9.]+ [mu]s' /tmp/report
orrery-prof export /tmp/marks.prof --csv /tmp/marks
[ "$(grep -c 'gone on' /tmp/marks/stream_mark.csv)" = 1 ]
grep -Eq '^[0-9]+,0,0,[0-9]+,1,a stream on device 0,,[1-9][0-9]*,5,[1-9][0-9]*,done,0,1,' /tmp/marks/signal.csv
orrery-prof trace /tmp/marks.prof -o /tmp/trace.json
[ "$(grep -o '"cat":"signal"' /tmp/trace.json | wc -l)" -ge 1 ]
[ "$(grep -o '"cat":"stream mark"' /tmp/trace.json | wc -l)" = 2 ]
orrery-prof html /tmp/marks.prof -o /tmp/marks.html
grep -q 'marks of a stream on device 0' /tmp/marks.html
# A reduction is a copy that says so, by itself and as a node of a graph, and none of the copies beside it.
orrery-prof record -o /tmp/reduced.prof -- umd_vm_test --gtest_filter=Reductions.*
orrery-prof report /tmp/reduced.prof > /tmp/report
cat /tmp/report
grep -Eq '^    reduction inside the device +2 +512\.0 KiB ' /tmp/report
grep -Eq '^    inside the device +1 +256\.0 KiB ' /tmp/report
grep -Eq '^  reduction +reduction +graph 1 +1 ' /tmp/report
orrery-prof report --json /tmp/reduced.prof | tr -d ' \n' > /tmp/report.json
grep -q '"direction":"insidethedevice","reduction":true' /tmp/report.json
grep -q '"direction":"insidethedevice","reduction":false' /tmp/report.json
orrery-prof export /tmp/reduced.prof --csv /tmp/reduced
[ "$(grep -Ec ',reduction,copy,.*,inside the device,0,0,.*,1.?$' /tmp/reduced/work.csv)" = 2 ]
# What is wrong with the command line of a sample is its own matter, and shows.
status=0
orrery-prof record -o /tmp/bad.prof -- vector_basics --nonsense || status=$?
[ $status = 2 ]
