#!/bin/sh
# Plays over cards that keep step, in one boot: each has the same times to the picosecond, also beside a busy guest.
set -u
fail() {
    echo "plays.sh: $*" >&2
    exit 1
}
play() { # FILE
    umd_vm_test --gtest_filter=InStep.APlay >out || fail "$(cat out)"
    grep '^times ' out >"$1" || fail "no times: $(cat out)"
    grep '^count ' out >"$1.counts"
}
# The first one finds tables that nobody has used.
play first
play quiet
sh -c 'while :; do :; done' &
busy=$!
for number in 1 2; do
    play beside
    cmp -s quiet beside || fail "play $number beside a busy process has other times: $(cat quiet beside)
and other counts, card, counter, quiet, beside:
$(awk '{ k = $2 " " $3; if (NR == FNR) was[k] = $4; else if (was[k] != $4 && k !~ /_ps$/) print k, was[k], $4 }' quiet.counts beside.counts)"
done
kill $busy
umd_vm_test --gtest_filter=InStep.NothingIsLate >out || fail "$(cat out)"
