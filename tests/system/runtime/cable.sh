#!/bin/bash
# cable.sh ORRERY_VM LOGS OPTION... -- COMMAND...: runs COMMAND in a VM of two cards, and has a hand at the cable between
# them, which the guest sees by a file /share/cables. It asks by a file /share/cable.N, N from 0 on, that says `unplug` or `plug`, and has its answer in
# /share/cable.N.done.
set -euo pipefail
vm=$1 logs=$2
shift 2
share=$(mktemp -d)
run=
finish() {
    [ -z "$run" ] || kill "$run" 2>/dev/null || true
    rm -rf -- "$share"
}
trap finish EXIT
rm -rf -- "$logs"
: >"$share/cables"

"$vm" --cards 2 --logs "$logs" --control --share "$share" "$@" &
run=$!
number=0
while kill -0 "$run" 2>/dev/null; do
    if [ ! -s "$share/cable.$number" ]; then
        sleep 0.02
        continue
    fi
    socket=$(sed -n '/"cards"/,$ s/.*"control": "\([^"]*\)".*/\1/p' "$logs/run.json" | head -n 1)
    perl -MIO::Socket::UNIX -e 'my $s = IO::Socket::UNIX->new(Peer => $ARGV[0]) or die "$ARGV[0]: $!\n";
        print $s "$ARGV[1] 0\n"; print scalar <$s>' "$socket" "$(cat "$share/cable.$number")" >"$share/answer"
    mv "$share/answer" "$share/cable.$number.done"
    number=$((number + 1))
done
wait "$run" && status=0 || status=$?
run=
exit "$status"
