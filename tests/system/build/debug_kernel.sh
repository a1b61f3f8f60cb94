#!/bin/bash
# What the debug kernel is made of does not come, because the download breaks off or there is no room: it ends with one line
# that has the cause, and leaves nothing but the log that the line names.
set -euo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
fail() { echo "FAILED: $1" >&2; cat "$work/err" >&2; exit 1; }

export XDG_CACHE_HOME=$work/cache ORRERY_DEBIAN_MIRROR=http://mirror.invalid/debian ORRERY_VM_TREE=$work/tree
unset ORRERY_DEBUG_KERNEL
mkdir -p "$work/bin" "$work/cache/orrery" "$work/tree/etc/orrery"
touch "$work/tree/etc/orrery/kernels"
PATH=$work/bin:$PATH

program() { # name, from stdin
    { echo '#!/bin/bash'; cat; } > "$work/bin/$1"
    chmod +x "$work/bin/$1"
}
breaks_off() { # cause
    local status=0 log
    "$root/tools/vm/debug-kernel.sh" > "$work/out" 2> "$work/err" || status=$?
    [ $status = 1 ] && [ ! -s "$work/out" ] || fail "$1: status $status"
    [ "$(grep -vc ' downloading linux-source' "$work/err")" = 1 ] || fail "$1: not one line"
    grep -qF "error: linux-source, flex, bison and bc did not come: $1. " "$work/err" || fail "$1: not told"
    log=$(sed -n 's/.*the log is //p' "$work/err")
    grep -qF "$1" "$log" || fail "$1: not in the log"
    ! compgen -G "$work/cache/orrery/*.new.*" || fail "$1: something was left"
}

program mmdebstrap << 'END'
echo 'I: downloading packages with apt...' >&2
echo 'E: Failed to fetch http://mirror.invalid/linux-source.deb  Remote end closed connection' >&2
echo 'I: main() received signal PIPE: waiting for setup...' >&2
echo 'E: mmdebstrap failed to run' >&2
exit 1
END
breaks_off 'E: Failed to fetch http://mirror.invalid/linux-source.deb  Remote end closed connection'

program mmdebstrap << 'END'
head -c 10M /dev/zero || { echo 'E: Broken pipe' >&2; exit 1; }
END
program tar << 'END'
echo 'tar: ./usr: Cannot mkdir: No space left on device' >&2
exit 2
END
breaks_off 'tar: ./usr: Cannot mkdir: No space left on device'
