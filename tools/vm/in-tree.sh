#!/bin/bash
# Runs a command inside the VM tree, with one directory of the host mounted at /checkout, and another at /tmp/also:
#   in-tree.sh [--also DIRECTORY] DIRECTORY COMMAND [ARGUMENT...]
# Needs root or user namespaces. The mounts live in a mount namespace of their own and vanish with it.
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
also=
if [ "${1:-}" = --also ]; then
    also=$(realpath -- "$2")
    shift 2
fi
[ $# -ge 2 ] || { echo "usage: ${0##*/} [--also DIRECTORY] DIRECTORY COMMAND [ARGUMENT...]" >&2; exit 2; }
tree=$("$here/tree.sh" --path)
directory=$(realpath -- "$1")
shift

as_root=()
[ "$(id -u)" = 0 ] || as_root=(--user --map-root-user)
# shellcheck disable=SC2016 # expanded by the inner shell
exec unshare "${as_root[@]}" --mount --propagation private -- /bin/sh -euc '
    tree=$1 directory=$2 also=$3
    shift 3
    mount --bind "$directory" "$tree/checkout"
    mount --rbind /dev "$tree/dev"
    mount --rbind /proc "$tree/proc"
    mount -t tmpfs tmpfs "$tree/tmp"
    if [ "$also" ]; then
        mkdir "$tree/tmp/also"
        mount --bind "$also" "$tree/tmp/also"
    fi
    exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp LC_ALL=C.UTF-8 chroot "$tree" "$@"
' in-tree "$tree" "$directory" "$also" "$@"
