#!/bin/bash
# The debug kernel: Debian's packaged kernel source with debug-kernel/config, built by the compiler of the VM tree.
#   debug-kernel.sh           build it if it is not there; its directory on stdout, progress on stderr
#   debug-kernel.sh --path    its directory; fails if it is not there
# The directory lies beside the VM tree under the key of its recipe, and holds vmlinuz, release, build/ (what Kbuild
# needs for modules), modules/ (what depmod says: all is built in) and info. See docs/vm.md.
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
config=$here/debug-kernel/config
suite=trixie
source "$here/to_the_end.sh"

say() { printf 'debug kernel: %s\n' "$*" >&2; }
die() { printf 'debug kernel: error: %s\n' "$*" >&2; exit 1; }

# Raise the format number when this script makes something else from the same configuration.
key() {
    { echo "format 1 $suite"; cat "$config"; } | sha256sum | cut -c1-16
}

# Kernel source, and what kconfig and the build ask for beyond the VM tree: unpacked, installed nowhere.
fetch() { # $1: where
    local uri mode=root options=() keyring=/usr/share/keyrings/debian-archive-keyring.gpg
    uri=$("$here/tree.sh" --mirror)
    mapfile -t options < <("$here/tree.sh" --proxy)
    [ "$(id -u)" = 0 ] || mode=unshare
    say "downloading linux-source from $uri (150 MB)"
    mmdebstrap --mode=$mode --variant=extract --format=tar --include=linux-source,flex,bison,bc "${options[@]}" \
        --aptopt='APT::Install-Recommends "false"' "$suite" - \
        "deb [signed-by=$keyring] $uri $suite main" 2> "$log" |
        to_the_end tar --extract --no-same-owner --directory="$1" --exclude='./dev/*' 2> "$log.tar" || not_fetched
    rm -f -- "$log.tar"
}

# Where mmdebstrap fails tar has half an archive; where tar does it says another thing than that.
not_fetched() {
    local cause
    cause=$(grep -m 1 '^E: ' "$log" || true)
    if [ -s "$log.tar" ] && ! grep -qE 'does not look like a tar archive|Unexpected EOF' "$log.tar"; then
        cause=$(head -n 1 "$log.tar")
    fi
    cat -- "$log.tar" >> "$log"
    rm -f -- "$log.tar"
    die "linux-source, flex, bison and bc did not come: ${cause:-no word of the cause}. Nothing of them was kept:" \
        "run 'make debug-kernel' again (ORRERY_DEBIAN_MIRROR=URL takes another mirror); the log is $log"
}

# Runs make in $work/kernel with the programs of $work/packages. readline comes with bc, which the VM tree lacks.
kernel_make() {
    "$here/in-tree.sh" "$work" env PATH="/checkout/bin:/usr/sbin:/usr/bin:/sbin:/bin" LD_LIBRARY_PATH=/checkout/lib \
        M4=/checkout/bin/m4 BISON_PKGDATADIR=/checkout/packages/usr/share/bison \
        KBUILD_BUILD_USER=orrery KBUILD_BUILD_HOST=debug KBUILD_BUILD_TIMESTAMP="@${source_date:-0}" \
        make -C /checkout/kernel "$@"
}

check_config() {
    local line name
    while read -r line; do
        case $line in
            '' | '#'*) continue ;;
            *=n) name=${line%=n}; ! grep -q "^$name=" "$work/kernel/.config" || die "Kconfig sets $name; $config says n" ;;
            *) grep -qxF -- "$line" "$work/kernel/.config" ||
                die "Kconfig does not give $line: something that it depends on is missing in $config" ;;
        esac
    done < "$config"
}

logged() { # command: into the log, whose end is shown if it fails
    "$@" >> "$log" 2>&1 || {
        grep -E '(error|Error) ' "$log" | head >&2
        tail -n 20 "$log" >&2
        die "the build failed; the log is $log"
    }
}

make_kernel() { # $1: where
    local archive version release started=$EPOCHREALTIME cpu
    log=$1.log
    : > "$log"
    work=$(mktemp -d "$1.new.XXXXXX")
    trap 'rm -rf -- "$work"' EXIT
    trap 'exit 130' INT TERM HUP
    mkdir "$work/packages" "$work/bin" "$work/lib" "$work/kernel"
    fetch "$work/packages"
    cp -- "$work"/packages/usr/bin/{flex,bison,m4,bc} "$work/bin/"
    cp -- "$work"/packages/usr/lib/x86_64-linux-gnu/lib{readline,tinfo}.so.* "$work/lib/"
    version=$(zcat "$work"/packages/usr/share/doc/linux-source/changelog.Debian.gz | sed -n '1s/.*(\(.*\)).*/\1/p')
    archive=$(echo "$work"/packages/usr/src/linux-source-*.tar.xz)
    tar --extract --file="$archive" --directory="$work/kernel" --strip-components=1 --no-same-owner
    rm -- "$archive"

    say "building it from linux-source $version: 11 minutes of CPU and 3 GB while it is built, once"
    cp -- "$config" "$work/config"
    logged kernel_make KCONFIG_ALLCONFIG=/checkout/config allnoconfig
    check_config
    logged kernel_make -j"$jobs" bzImage modules
    # shellcheck disable=SC2016 # expanded by make's shell
    logged kernel_make run-command KBUILD_RUN_COMMAND='$(srctree)/scripts/package/install-extmod-build /checkout/out/build'
    logged kernel_make modules_install INSTALL_MOD_PATH=/checkout/out/root
    release=$(cat "$work/kernel/include/config/kernel.release")
    cp -- "$work/kernel/arch/x86/boot/bzImage" "$work/out/vmlinuz"
    cp -- "$work/kernel/System.map" "$work/kernel/.config" "$work/out/"
    mv -- "$work/out/root/lib/modules/$release" "$work/out/modules"
    rm -rf -- "$work/out/root" "$work/out/modules/build"
    touch "$work/out/modules/modules.dep"
    echo "$release" > "$work/out/release"
    times > "$work/times" # not in a pipe: a subshell has no children yet
    cpu=$(awk 'NR == 2 { split($0, t, /[ms ]+/); printf "%d", (t[1] + t[3]) * 60 + t[2] + t[4] }' "$work/times")
    awk -v a="$started" -v b="$EPOCHREALTIME" -v cpu="$cpu" -v version="$version" \
        'BEGIN { printf "linux-source %s, built in %.0f s, %d CPU seconds\n", version, b - a, cpu }' > "$work/out/info"
    mv -T -- "$work/out" "$1"
    rm -rf -- "$work" "$log"
    trap - EXIT INT TERM HUP
    say "ready: $release, $(cat "$1/info")"
}

cache=${XDG_CACHE_HOME:-$HOME/.cache}/orrery
directory=${ORRERY_DEBUG_KERNEL:-$cache/debug-kernel-$(key)}
jobs=$(nproc)

case ${1:-} in
    --path)
        [ -e "$directory/release" ] || die "there is no debug kernel at $directory: build it with make debug-kernel"
        echo "$directory" ;;
    '')
        if [ ! -e "$directory/release" ]; then
            [ -z "${ORRERY_DEBUG_KERNEL:-}" ] || die "ORRERY_DEBUG_KERNEL=$ORRERY_DEBUG_KERNEL holds no debug kernel"
            command -v mmdebstrap >/dev/null || die "mmdebstrap is not installed: run tools/setup/setup.sh"
            "$here/tree.sh" >/dev/null
            exec 9> "$directory.lock"
            if ! flock --nonblock 9; then
                say "another run is building it; waiting for that"
                flock 9
            fi
            [ -e "$directory/release" ] || make_kernel "$directory" 9>&9
        fi
        echo "$directory" ;;
    *) die "unknown option '$1'; see the first lines of $0" ;;
esac
