#!/bin/bash
# prepare.sh KERNEL COMMAND...: the VM tree and the module for KERNEL (lts, backports, all) on one side and COMMAND, which builds
# programs, on the other, at the same time. The first to fail ends the other. With KERNEL "all" a kernel for which the module
# does not build fails its own tests only, which name the cause.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."
kernel=$1
shift

both() {
    set -m # a process group each, so that all of a side can be ended
    { tools/vm/tree.sh > /dev/null && { tools/vm/kbuild.sh --kernel "$kernel" || [ "$kernel" = all ]; }; } < /dev/null &
    local sides=($!) status=0
    { "$@" && echo "progress: programs: "; } < /dev/null &
    sides+=($!)
    set +m
    trap 'kill -TERM -- "-${sides[0]}" "-${sides[1]}" 2>/dev/null; exit 130' INT TERM HUP
    wait -n "${sides[@]}" || status=$? # then the other, unless the first failed; one that is done is remembered
    if [ $status -eq 0 ]; then { wait "${sides[0]}" && wait "${sides[1]}"; } || status=$?; fi
    if [ $status -ne 0 ]; then
        kill -TERM -- "-${sides[0]}" "-${sides[1]}" 2>/dev/null || true
        wait || true
    fi
    return $status
}
ORRERY_PROGRESS=yes both "$@" 2>&1 | tools/make/relay.sh
