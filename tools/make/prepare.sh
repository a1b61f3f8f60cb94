#!/bin/bash
# prepare.sh KERNEL COMMAND...: the VM tree and the module for KERNEL (lts, backports, all) on one side and COMMAND, which builds
# programs, on the other, at the same time. The first to fail ends the other. With KERNEL "all" a kernel for which the module
# does not build fails its own tests only, which name the cause.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."
kernel=$1
shift

# A process group each: all of a side ends, also what it has started. $! is a side that has just been started.
sides=()
end_sides() {
    local side
    for side in "${sides[@]}" ${!:+"$!"}; do kill -TERM -- "-$side" 2>/dev/null || true; done
}

both() {
    # Before there are sides: no terminal reaches their groups.
    trap 'end_sides; exit 130' INT TERM HUP
    # The signal that ends this shell ends relay.sh too, perhaps first: what bash says of it then must not end this shell before
    # its sides. A handler, for the sides are to die of a closed pipe.
    trap : PIPE
    set -m
    { tools/vm/tree.sh > /dev/null && { tools/vm/kbuild.sh --kernel "$kernel" || [ "$kernel" = all ]; }; } < /dev/null &
    sides=($!)
    local status=0
    { "$@" && echo "progress: programs: "; } < /dev/null &
    sides+=($!)
    set +m
    wait -n "${sides[@]}" || status=$? # then the other, unless the first failed; one that is done is remembered
    if [ $status -eq 0 ]; then { wait "${sides[0]}" && wait "${sides[1]}"; } || status=$?; fi
    if [ $status -ne 0 ]; then
        end_sides
        wait || true
    fi
    return $status
}
ORRERY_PROGRESS=yes both "$@" 2>&1 | tools/make/relay.sh
