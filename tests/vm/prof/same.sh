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
    for how in "--counters --samples 6 --pc 0.1" "--trace-core 0:0:0-100000"; do
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
    for counter in $counters; do
        cat /sys/class/accel/accel*/device/counters/"$counter" | awk -v name="$counter" '{ sum += $1 } END { printf "%s %.0f\n", name, sum }'
    done
}
difference() { awk 'NR == FNR { was[$1] = $2; next } { printf "%s %.0f\n", $1, $2 - was[$1] }' "$1" "$2"; }
# What is left without numbers, and without the word that cards were late, says what was done and if it was right.
results() { sed -E '/^  cards were behind each other/d; s/[0-9]+([.,e-]+[0-9]+)*( ?(ns|us|ms|s))?/N/g; s/ +/ /g' "$1"; }
# same COMMAND...: twice, plain and profiled; $counters are those that have to be the same.
same() {
    sums >/tmp/before
    "$@" >/tmp/plain || fail "$*: status $?: $(cat /tmp/plain)"
    sums >/tmp/between
    orrery-prof record -o /tmp/profile --counters --samples 6 --pc 0.1 -- "$@" >/tmp/profiled || fail "$*, profiled: status $?: $(cat /tmp/profiled)"
    sums >/tmp/after
    results /tmp/plain >/tmp/want
    results /tmp/profiled | cmp - /tmp/want || fail "$*: other results: $(cat /tmp/plain /tmp/profiled)"
    difference /tmp/before /tmp/between >/tmp/want
    difference /tmp/between /tmp/after | cmp - /tmp/want || fail "$*: other counters: $(difference /tmp/between /tmp/after) and not $(cat /tmp/want)"
    [ "$(grep -Ec ' [1-9]' /tmp/want)" -gt 0 ] || fail "$*: nothing was counted"
    echo "$*: $(tr "\n" " " </tmp/want)"
}
counters="copy_jobs copy_bytes link_tx_bytes link_rx_bytes"
same relay
[ "$1" = quick ] && exit 0
counters="vector_groups vector_items vector_flops_f32 copy_bytes"
same overlap --quick
same worked host
same worked memory
same halo --quick
same pipeline --quick
counters="vector_groups vector_items copy_bytes"
same histogram
# Which data goes to which card depends on who was first; the work does not.
counters="vector_groups vector_items vector_flops_f64"
same cholesky
