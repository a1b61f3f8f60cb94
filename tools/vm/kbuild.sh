#!/bin/bash
# Builds orrery.ko for the guest kernels, with the compiler and the headers of the VM tree.
#   kbuild.sh [--kernel lts|backports|debug|all] [--source DIR] [--out DIR] [--sparse]
# Result: OUT/<kernel release>/orrery.ko (OUT is build/kmod of this checkout), or another module of --source. A run without changes costs
# some milliseconds: a stamp holds the checksums of all that goes in. Warnings are errors (W=1).
# Each kernel is built on its own. One that the module does not build for costs a line with the cause, which also stays in
# OUT/<kernel release>/failed for orrery-vm to tell; the others are built all the same, and the status is 1.
# --sparse checks with sparse (make C=2) instead, in OUT/<kernel release>-sparse, and leaves no module; against the
# LTS kernel only, because Debian's sparse 0.6.4 cannot parse the headers of 7.x (__typeof_unqual__).
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
root=$(cd -- "$here/../.." && pwd)

say() { printf 'kmod: %s\n' "$*" >&2; }
die() { printf 'kmod: error: %s\n' "$*" >&2; exit 1; }

kernel='' source=$root/kmod out=$root/build/kmod sparse=
while [ $# -gt 0 ]; do
    case $1 in
        --kernel | --source | --out) [ $# -ge 2 ] || die "$1 needs a value"; declare "${1#--}=$2"; shift 2 ;;
        --sparse) sparse=yes; shift ;;
        *) die "unknown option '$1'; see the first lines of $0" ;;
    esac
done
if [ -n "$sparse" ]; then kernel=lts; fi
[ -e "$source/Kbuild" ] || [ -e "$source/Makefile" ] || die "$source holds no Kbuild file"
tree=$("$here/tree.sh" --path)
source=$(realpath -- "$source")
contracts=(emulator/include firmware/include)

# path relative to the stage, tab, file: what a build reads. A build by hand leaves files that are generated.
inputs() {
    find "$source" -type f ! -name '*.mod.c' ! -name orr_kernel_api.h \( -name '*.[chS]' -o -name Kbuild -o -name Makefile -o -name '*.sh' \) \
        -printf 'kmod/%P\t%p\n'
    local c
    for c in "${contracts[@]}"; do
        [ ! -d "$root/$c" ] || find "$root/$c" -type f -name '*.h' -printf "$c/%P\t%p\n"
    done
}

# The first thing that a compiler, modpost or make complained about, on one line.
first_cause() { # log
    local line
    line=$(grep -m 1 -E '(error|warning): |^ERROR|undefined!$' "$1" || grep -m 1 -F '***' "$1" || tail -n 1 "$1")
    printf '%s' "${line#/checkout/}"
}

broken() { # what, as one line
    printf '%s\n' "$1" > "$stage/failed"
    die "$1"
}

build() { # name, release, [directory of the debug kernel]
    local name=$1 release=$2 debug=${3:-} headers=/lib/modules/$2/build flags=(W=1) stage files stamp started=$EPOCHREALTIME relative file
    stage=$out/$release${sparse:+-sparse}
    mkdir -p "$stage/kmod"
    exec 8> "$stage/.lock"
    flock --nonblock 8 || { say "another run builds for $release; waiting for that"; flock 8; }
    files=$(inputs | sort)
    stamp=$({ echo "$tree $debug $release $files"; cut -f2 <<< "$files" | xargs -d '\n' sha256sum; sha256sum "${BASH_SOURCE[0]}"; } |
        sha256sum)
    if [ "$(cat "$stage/.stamp" 2>/dev/null)" = "$stamp" ] && { [ -n "$sparse" ] || compgen -G "$stage/*.ko" > /dev/null; }; then
        return
    fi
    rm -f "$stage/.stamp" "$stage"/*.ko "$stage/failed"
    # A copy, because Kbuild writes its objects beside the sources. Unchanged files keep their time stamps.
    find "$stage/kmod" -type f \( -name '*.[chS]' ! -name '*.mod.c' -o -name Kbuild \) -printf 'kmod/%P\n' |
        sort | comm -23 - <(cut -f1 <<< "$files") | while read -r file; do rm -f -- "${stage:?}/$file"; done
    while IFS=$'\t' read -r relative file; do
        cmp -s "$file" "$stage/$relative" || install -D -m 644 "$file" "$stage/$relative"
    done <<< "$files"
    # Sparse does not know guard(), so its count of locks taken and released means nothing.
    [ -z "$sparse" ] || flags+=(C=2 "CF=-D__CHECK_ENDIAN__ -Wno-context")
    if [ -n "$debug" ]; then headers=/tmp/also/build; fi
    if ! "$here/in-tree.sh" ${debug:+--also "$debug"} "$stage" make -C "$headers" M=/checkout/kmod "${flags[@]}" \
        -j"$(nproc)" modules > "$stage/log" 2>&1; then
        broken "no module for $release ($name): $(first_cause "$stage/log") (log: $stage/log)"
    fi
    grep -E '(warning|error): |^WARNING|^ERROR' "$stage/log" |
        grep -vE '^(/usr/src/|\./|\.\./|include/|arch/)|the compiler differs from|pahole version differs' > "$stage/warnings" || true
    [ -z "$sparse" ] || [ ! -s "$stage/warnings" ] || { cat "$stage/warnings" >&2; die "sparse found the above in $release"; }
    [ ! -s "$stage/warnings" ] ||
        broken "no module for $release ($name), a warning: $(first_cause "$stage/warnings") (all: $stage/warnings)"
    [ -z "$sparse" ] || { grep -q '^ *CHECK ' "$stage/log" && ! grep -q 'too many errors' "$stage/log"; } ||
        die "sparse did not get through for $release; see $stage/log"
    [ -n "$sparse" ] || cp -- "$stage"/kmod/*.ko "$stage/"
    [ -n "$sparse" ] || compgen -G "$stage/*.ko" > /dev/null ||
        broken "no module for $release ($name): the build gave none (log: $stage/log)"
    echo "$stamp" > "$stage/.stamp"
    say "$([ -n "$sparse" ] && echo sparse is clean || echo orrery.ko built) for $release" \
        "($(awk -v a="$started" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }') s)"
}

if [ "$kernel" = debug ]; then
    debug=$("$here/debug-kernel.sh" --path)
    build debug "$(cat "$debug/release")" "$debug"
    exit
fi
jobs=()
trap 'kill "${jobs[@]}" 2>/dev/null; exit 130' INT TERM HUP
while read -r name release; do
    case $kernel in "$name" | "$release" | "" | all) build "$name" "$release" & jobs+=($!) ;; esac
done < "$tree/etc/orrery/kernels"
[ ${#jobs[@]} -gt 0 ] || die "no kernel '$kernel' in the VM tree; it has: $(paste -sd' ' "$tree/etc/orrery/kernels")"
status=0
for job in "${jobs[@]}"; do wait "$job" || status=1; done
exit $status
