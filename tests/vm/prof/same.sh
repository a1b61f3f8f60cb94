#!/bin/sh
# Profiling is free: samples take the same model time with and without, to the picosecond, where all their work is queued
# in one stream behind one release. The others have the same results, and the same counters of what does not depend on
# when work came: who gets a turn first among several streams does.
# same.sh quick|long
set -eu
fail() {
    echo "same.sh: $*" >&2
    exit 1
}
samples=vector_basics
[ "$1" = quick ] || samples="vector_basics gemm attention embedding overlap"
# What a card has done before is part of its state, so somebody else is the first.
vector_basics --quick >/tmp/out
several='^(three streams|captured graph) '
for sample in $samples; do
    $sample --quick --exact >/tmp/plain
    cat /tmp/plain
    [ "$(grep -Ev "$several" /tmp/plain | grep -Ec '[0-9]\.[0-9]{3} ns .* yes$')" -gt 0 ] || fail "$sample says no time"
    for how in "--counters --samples 7 --pc 0.1" "--trace-core 0:0:0-100000"; do
        # shellcheck disable=SC2086
        orrery-prof record -o /tmp/profile $how -- $sample --quick --exact >/tmp/profiled || fail "$sample, with $how: status $?: $(cat /tmp/profiled)"
        grep -Ev "$several" /tmp/plain >/tmp/want
        grep -Ev "$several" /tmp/profiled | cmp - /tmp/want || fail "$sample is another with $how: $(cat /tmp/profiled)"
        orrery-prof stat /tmp/profile >/tmp/stat
        grep -Eq '^  orrLaunchKernel +[1-9]' /tmp/stat || fail "$sample: nothing was recorded with $how"
        # All that was asked for is there: what is not taken costs nothing either.
        case $how in
        --trace-core*)
            orrery-prof instructions /tmp/profile >/tmp/instructions
            [ "$(wc -l </tmp/instructions)" -gt 100 ] || fail "$sample: no instructions"
            ;;
        *)
            rm -rf /tmp/tables
            orrery-prof export /tmp/profile --csv /tmp/tables
            for table in work_counters sample pc_sample; do
                [ "$(wc -l <"/tmp/tables/$table.csv")" -gt 1 ] || fail "$sample: no $table with $how"
            done
            ;;
        esac
    done
done

# All cards' together: which of them does what is the library's choice.
sums() {
    files=$(for counter in $counters; do echo /sys/class/accel/accel*/device/counters/"$counter"; done)
    # shellcheck disable=SC2086
    awk '{ n = split(FILENAME, part, "/"); sum[part[n]] += $1 } END { for (name in sum) printf "%s %.0f\n", name, sum[name] }' $files >/tmp/sums
    sort /tmp/sums
}
difference() { awk 'NR == FNR { was[$1] = $2; next } { printf "%s %.0f\n", $1, $2 - was[$1] }' "$1" "$2"; }
# Lines with what was computed are as they are; the others are left without numbers, and without the word that cards were
# late, so they say what was done. Ranks print in any order.
computed='digest [0-9a-f]|residual [0-9]|"bins": \[[0-9]'
results() {
    sed -E -e '/^  cards were behind each other/d' -e "/$computed/b" -e 's/[0-9]+([.,e-]+[0-9]+)*( ?(ns|us|ms|s))?/N/g' -e 's/ +/ /g' "$1" |
        sort
}
record="orrery-prof record --counters --samples 7 --pc 0.1"
# same COMMAND...: twice, plain and profiled; $counters are those that have to be the same.
same() {
    # shellcheck disable=SC2086
    compare "$*" "$*" "$record -o /tmp/profile -- $*"
}
# ranks COMMAND...: the same of two ranks, a card and a profile each.
ranks() {
    # shellcheck disable=SC2016 # each rank's
    compare "ranks of $*" "orrery-ranks 2 $*" "orrery-ranks 2 sh -c 'exec $record -o /tmp/profile\$ORR_RANK -- $*'"
}
compare() { # NAME PLAIN PROFILED
    sums >/tmp/before
    sh -c "$2" >/tmp/plain || fail "$1: status $?: $(cat /tmp/plain)"
    sums >/tmp/between
    sh -c "$3" >/tmp/profiled || fail "$1, profiled: status $?: $(cat /tmp/profiled)"
    sums >/tmp/after
    results /tmp/plain >/tmp/want
    results /tmp/profiled | cmp - /tmp/want || fail "$1: other results: $(cat /tmp/plain /tmp/profiled)"
    case $1 in
    relay | vector_basics* | overlap*) ;; # print nothing of what they compute
    *) grep -Eq "$computed" /tmp/want || fail "$1: prints nothing of what it computes: $(cat /tmp/plain)" ;;
    esac
    difference /tmp/before /tmp/between >/tmp/want
    difference /tmp/between /tmp/after | cmp - /tmp/want || fail "$1: other counters: $(difference /tmp/between /tmp/after) and not $(cat /tmp/want)"
    [ "$(grep -Ec ' [1-9]' /tmp/want)" -gt 0 ] || fail "$1: nothing was counted"
    for counter in $never; do ! grep "^$counter [1-9]" /tmp/want || fail "$1: counted what nobody should do"; done
    echo "$1: $(tr "\n" " " </tmp/want)"
}
# What kernels execute, and what nobody should do at all: neither depends on when anything came. Times, caches, translations,
# messages and what the firmware and the host exchange do.
executed="vector_jobs vector_groups vector_items vector_barriers vector_instructions vector_lanes vector_lanes_active"
for class in int fp moves loads stores config; do executed="$executed vector_simd_$class"; done
for class in int muldiv fp loads stores jumps atomics system; do executed="$executed vector_scalar_$class"; done
for type in f16 f32 f64; do executed="$executed vector_flops_$type"; done
never="unimplemented guest_errors resets core_restarts link_denied link_forwarded link_dropped"
never="$never barrier_releases barrier_failures barrier_denied"
counters="copy_jobs copy_bytes link_tx_bytes link_rx_bytes $never"
same relay
counters="copy_jobs copy_bytes $executed $never"
same vector_basics --quick
[ "$1" = quick ] && exit 0
counters="copy_bytes $executed $never"
same overlap --quick
same worked host
same worked memory
same halo --quick
same pipeline --quick
ORR_TOKEN=orrg1-unix-00112233445566778899aabbccddeeff-00112233445566778899aabbccddeeff
export ORR_TOKEN
# Ranks meet by the cards' units, and who leaves ends that.
meeting=$(echo "$never" | sed 's/barrier_releases barrier_failures //')
all_never=$never never=$meeting
counters="copy_bytes $executed barrier_releases $never"
ranks neighbours
ranks worked rank
never=$all_never
counters="vector_groups vector_items copy_bytes"
same histogram --json
# Which data goes to which card depends on who was first; the work does not.
counters="vector_groups vector_items vector_flops_f64"
same cholesky
