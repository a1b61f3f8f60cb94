#!/bin/bash
# card_death.sh ORRERY_VM LOGS HOW [OPTION...]: takes the first of two cards away while the guest uses it. The guest's
# program has to learn of it from its system calls, without a crash or a hang, and the other card works on. HOW is
#   killed   its process gets SIGKILL
#   stopped  the same, after it was stopped for a while: the guest's requests are unread in its socket, which stock QEMU
#            alone does not survive
#   ones     all its registers read as all-ones, by its control socket
set -euo pipefail
vm=$1
logs=$2
how=$3
shift 3
share=$(mktemp -d)
trap 'rm -rf -- "$share"' EXIT
rm -rf -- "$logs"

"$vm" --cards 2 --timeout 120 --logs "$logs" --allow-card-exit --control --share "$share" "$@" -- \
    kmod_removal_test --gtest_also_run_disabled_tests '--gtest_filter=*TheCardDies' &
run=$!
while [ ! -e "$share/ready" ]; do
    kill -0 $run 2>/dev/null || { wait $run || true; echo "card_death.sh: the VM ended too early" >&2; exit 1; }
    sleep 0.1
done
sleep 0.5
first_of() { sed -n '/"cards"/,$ s/.*"'"$1"'": "\?\([^",]*\).*/\1/p' "$logs/run.json" | head -n 1; }
case $how in
    killed) kill -KILL "$(first_of pid)" ;;
    stopped)
        kill -STOP "$(first_of pid)"
        sleep 2 # the driver looks at the card meanwhile
        kill -KILL "$(first_of pid)"
        ;;
    ones)
        answer=$(perl -MIO::Socket::UNIX -e 'my $s = IO::Socket::UNIX->new(Peer => $ARGV[0]) or die "$ARGV[0]: $!\n";
            print $s "add register count=all all-ones\n"; print scalar <$s>' "$(first_of control)")
        [ "$answer" = ok ] || { echo "card_death.sh: the card answers '$answer'" >&2; exit 1; }
        ;;
esac
wait $run
