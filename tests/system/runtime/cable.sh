#!/bin/bash
# cable.sh ORRERY_VM LOGS OPTION... -- COMMAND...: runs COMMAND in a VM of two cards, and has a hand at the cable between
# them, which the guest sees by a file /share/cables. It asks for a `cable` with `unplug` or `plug` in it (hand.sh), and has the card's answer.
set -euo pipefail
vm=$1 logs=$2
shift 2
# shellcheck source=tests/system/runtime/hand.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/hand.sh"
rm -rf -- "$logs"
: >"$share/cables"

pull() { # NUMBER
    local socket
    socket=$(sed -n '/"cards"/,$ s/.*"control": "\([^"]*\)".*/\1/p' "$logs/run.json" | head -n 1)
    perl -MIO::Socket::UNIX -e 'my $s = IO::Socket::UNIX->new(Peer => $ARGV[0]) or die "$ARGV[0]: $!\n";
        print $s "$ARGV[1] 0\n"; print scalar <$s>' "$socket" "$(cat "$share/cable.$1")"
}
serve cable pull "$vm" --cards 2 --logs "$logs" --control --share "$share" "$@"
exit "$status"
