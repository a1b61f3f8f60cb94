#!/bin/bash
# stopped.sh ORRERY_VM LOGS OPTION... -- COMMAND...: runs COMMAND in a VM of one card, of which only registers can be read while
# the guest wants that, as if its other threads had no CPU. It asks for a `stop` with `on` or `off` in it (hand.sh), and sees
# by a file /share/stops that it may.
set -euo pipefail
vm=$1 logs=$2
shift 2
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/system/runtime/hand.sh
. "$here/../../system/runtime/hand.sh"
rm -rf -- "$logs"
: >"$share/stops"
tracer=
until_there() { # FILE: that the tracer makes; false if it ends without
    while [ ! -e "$1" ]; do
        kill -0 "$tracer" 2>/dev/null || [ -e "$1" ] || return 1
        sleep 0.01
    done
}

stop() { # NUMBER
    if [ "$(cat "$share/stop.$1")" = on ]; then
        local pid
        pid=$(sed -n '/"cards"/,$ s/.*"pid": "\?\([^",]*\).*/\1/p' "$logs/run.json" | head -n 1)
        perl "$here/stop_threads.pl" "$pid" "$share/stopped" &
        tracer=$!
        until_there "$share/stopped" || { echo "error: the card's threads cannot be stopped"; return; }
    else
        rm -f "$share/stopped"
        until_there "$share/stopped.off" || { echo "error: nobody holds the card's threads"; return; }
        rm "$share/stopped.off"
    fi
    echo ok
}
serve stop stop "$vm" --cards 1 --logs "$logs" --share "$share" "$@"
if [ "$status" = 0 ] && [ "$number" = 0 ]; then
    echo "stopped.sh: nobody had the card stopped: what was to be tested was not" >&2
    exit 1
fi
exit "$status"
