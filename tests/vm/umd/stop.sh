#!/bin/bash
# stop.sh ORRERY_VM LOGS OPTION... -- COMMAND...: runs COMMAND in a VM, and stops a card or a switch for good when the guest asks for
# it, which sees by a file /share/stopper that it may. It asks for a `stop` (hand.sh) with one of these in it; N is a card, or a
# switch, which are counted on behind the cards:
#   process N   SIGSTOP. Of a card a guest stands too, at its next access, until its VM gives that up
#   threads N   all threads but the one that answers the host's accesses to registers
#   continue N  what has been stopped goes on, so that it can end
# Who has nothing stopped has tested nothing: that fails.
set -euo pipefail
vm=$1 logs=$2
shift 2
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/system/runtime/hand.sh
. "$here/../../system/runtime/hand.sh"
rm -rf -- "$logs"
: >"$share/stopper"

stop() { # NUMBER
    local how which pid
    read -r how which <"$share/stop.$1"
    pid=$(sed -n '/"cards"/,$ s/.*"pid": "\?\([^",]*\).*/\1/p' "$logs/run.json" | sed -n "$((which + 1))p")
    case $how in
        process) kill -STOP "$pid" || { echo "error: $pid cannot be stopped"; return; } ;;
        threads)
            perl "$here/../kmod/stop_threads.pl" "$pid" "$share/stopped.$1" &
            local tracer=$!
            while [ ! -e "$share/stopped.$1" ]; do
                kill -0 "$tracer" 2>/dev/null || { echo "error: the threads of $pid cannot be stopped"; return; }
                sleep 0.01
            done
            ;;
        continue)
            kill -CONT "$pid" || { echo "error: $pid does not go on"; return; }
            rm -f "$share"/stopped.*
            ;;
        *) echo "error: '$how'"; return ;;
    esac
    echo ok
}
serve stop stop "$vm" --logs "$logs" --share "$share" "$@"
if [ "$status" = 0 ] && [ "$number" = 0 ]; then
    echo "stop.sh: nobody had anything stopped: what was to be tested was not" >&2
    exit 1
fi
exit "$status"
