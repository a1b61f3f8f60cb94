#!/bin/bash
# The VM tree: a Debian tree with QEMU, the guest kernels and the compiler that builds modules for them.
#   tree.sh           make it if it is not there; its path on stdout, progress on stderr
#   tree.sh --renew   take the newest packages: make another tree, or take one that another checkout has made in the
#                     last two weeks; other checkouts keep theirs until they ask themselves
#   tree.sh --path    its path; fails if it is not there
#   tree.sh --mirror  the Debian mirror that would be used; --proxy: mmdebstrap's options for the host's apt proxy
# It is cached outside the checkout under the key of its recipe, so that all clones share it; build/vm-tree says which one
# this checkout uses, and <tree>.users/ who uses a tree. See docs/vm.md.
set -euo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
root=$(cd -- "$here/../.." && pwd)
recipe=$here/tree
suite=trixie
old_after=14 # days
source "$here/to_the_end.sh"

say() { printf 'vm tree: %s\n' "$*" >&2; }
die() { printf 'vm tree: error: %s\n' "$*" >&2; exit 1; }

# Raise the format number when this script makes a different tree from the same recipe.
key() {
    { echo "format 1 $suite"; cat "$recipe/packages.txt" "$recipe/preferences" "$recipe/kernels.sh"; } |
        sha256sum | cut -c1-16
}

# The archive that this host itself is installed from: the entry for its own suite with component main,
# from deb822 (*.sources) and one-line (*.list) files. Third-party and security archives have other suites.
host_mirror() {
    local codename files=()
    codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
    local file
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.sources /etc/apt/sources.list.d/*.list; do
        if [ -r "$file" ]; then files+=("$file"); fi
    done
    [ ${#files[@]} -gt 0 ] || return 0
    awk -v codename="$codename" '
        function wanted(suites, components,   n, i, word, ok) {
            if (" " components " " !~ / main /) return 0
            n = split(suites, word, " ")
            for (i = 1; i <= n; i++)
                if (word[i] == codename || word[i] ~ /^(stable|oldstable|testing|unstable|sid|trixie|bookworm)$/) ok = 1
            return ok
        }
        function flush_stanza() {
            if (enabled && types ~ /(^| )deb( |$)/ && wanted(suites, components)) {
                split(uris, u, " "); print u[1]
            }
            enabled = 1; types = uris = suites = components = ""
        }
        BEGIN { enabled = 1 }
        FNR == 1 { flush_stanza() }
        /^[ \t]*#/ { next }
        FILENAME ~ /\.sources$/ {
            if ($0 ~ /^[ \t]*$/) { flush_stanza(); next }
            if ($0 ~ /^[A-Za-z-]+:/) { field = tolower($1); sub(/^[^:]*:[ \t]*/, "") }
            if (field == "types:") types = types " " $0
            else if (field == "uris:") uris = uris " " $0
            else if (field == "suites:") suites = suites " " $0
            else if (field == "components:") components = components " " $0
            else if (field == "enabled:" && tolower($0) ~ /no|false|0/) enabled = 0
            next
        }
        $1 == "deb" {
            line = $0
            sub(/^[ \t]*deb[ \t]+/, "", line); sub(/^\[[^]]*\][ \t]+/, "", line)
            n = split(line, w, /[ \t]+/)
            components = ""
            for (i = 3; i <= n; i++) components = components " " w[i]
            if (wanted(w[2], components)) print w[1]
            components = ""
        }
        END { flush_stanza() }
    ' "${files[@]}"
}

mirror() {
    if [ -n "${ORRERY_DEBIAN_MIRROR:-}" ]; then echo "${ORRERY_DEBIAN_MIRROR%/}"; return; fi
    local uri
    while read -r uri; do
        case $uri in http://* | https://* | file:/*) echo "${uri%/}"; return ;; esac
    done < <(host_mirror)
    die "no Debian mirror (http://, https:// or file:) among this host's apt sources." \
        "Set ORRERY_DEBIAN_MIRROR to one, for example ORRERY_DEBIAN_MIRROR=http://MIRROR/debian"
}

# Options that hand the host's apt proxy on; http_proxy and its kind arrive through the environment.
proxy_options() {
    local kind value
    for kind in http https; do
        value=$(apt-config dump --format '%v%n' "Acquire::$kind::Proxy" 2>/dev/null | head -n 1)
        if [ -n "$value" ]; then printf '%s\n' "--aptopt=Acquire::$kind::Proxy \"$value\""; fi
    done
}

make_tree() { # $1: where
    local tree=$1 uri mode keyring=/usr/share/keyrings/debian-archive-keyring.gpg packages log options=()
    uri=$(mirror)
    command -v mmdebstrap >/dev/null || die "mmdebstrap is not installed: run tools/setup/setup.sh"
    [ -r $keyring ] || die "$keyring is missing: run tools/setup/setup.sh (package debian-archive-keyring)"
    if [ "$(id -u)" = 0 ]; then
        mode=root
    else
        mode=unshare
        unshare --user true 2>/dev/null || die "user namespaces are switched off for $(id -un):" \
            "'sudo sysctl -w user.max_user_namespaces=10000' switches them on (some hosts also need kernel.unprivileged_userns_clone=1)"
        for map in /etc/subuid /etc/subgid; do
            grep -qE "^($(id -un)|$(id -u)):" $map 2>/dev/null || die "$(id -un) has no range in $map:" \
                "'sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 $(id -un)' gives one"
        done
    fi
    packages=$(awk '!/^#/ && NF { print $1 }' "$recipe/packages.txt" | paste -sd,)
    mapfile -t options < <(proxy_options)
    work=$(mktemp -d "$tree.new.XXXXXX")
    # In a user namespace the hooks run as somebody who may not look into this user's home.
    staged=$(mktemp -d /var/tmp/orrery-recipe.XXXXXX)
    chmod 755 "$staged"
    log=$tree.log
    trap 'rm -rf -- "$work" "$staged"' EXIT
    trap 'exit 130' INT TERM HUP

    say "making $tree"
    say "from $uri ($suite and $suite-backports); about two minutes and 1 GB, once"
    sed "s/@SUITE@/$suite/" "$recipe/preferences" > "$staged/preferences"
    install -m 755 "$recipe/kernels.sh" "$staged/kernels.sh"
    mkdir "$work/tree"
    # Through a tar stream, so that the tree belongs to the user who made it, and rm -rf removes it.
    if ! TMPDIR=/var/tmp mmdebstrap --mode=$mode --variant=essential --format=tar \
        --include="$packages" "${options[@]}" \
        --aptopt='APT::Install-Recommends "false"' \
        --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
        --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/info/*' \
        --dpkgopt='path-exclude=/etc/kernel/*' \
        --setup-hook="mkdir -p \"\$1\"/etc/apt/preferences.d && cp '$staged/preferences' \"\$1\"/etc/apt/preferences.d/orrery" \
        --customize-hook="$staged/kernels.sh" \
        "$suite" - \
        "deb [signed-by=$keyring] $uri $suite main" \
        "deb [signed-by=$keyring] $uri $suite-backports main" \
        2> >(tee "$log" | sed -un '/^I: \(running apt-get update\|downloading\|extracting\|installing\|cleaning\|creating tarball\)/s/^I: /vm tree:   /p; s/^I: running --customize-hook.*/vm tree:   installing the kernels.../p; s/^E: /vm tree: error: /p' >&2) |
        to_the_end tar --extract --no-same-owner --directory="$work/tree" --exclude='./dev/*'; then
        tail -n 25 "$log" >&2
        die "the tree was not made; the whole log is $log"
    fi
    local qemu
    qemu=$(awk '/^Package: / { p = $2 } /^Version: / && p == "qemu-system-x86" { sub(/^[0-9]*:/, "", $2); print $2 }' \
        "$work/tree/var/lib/dpkg/status")
    dpkg --compare-versions "$qemu" ge 10.1 || die "the mirror has QEMU $qemu; vfio-user cards need 10.1 or later"
    mkdir -p "$work/tree/checkout"
    mv -T -- "$work/tree" "$tree"
    rm -rf -- "$work" "$staged"
    rm -f -- "$log"
    trap - EXIT INT TERM HUP
    say "ready: QEMU $qemu, kernels $(awk '{ print $2 }' "$tree/etc/orrery/kernels" | paste -sd' ')"
}

cache=${XDG_CACHE_HOME:-$HOME/.cache}/orrery
base=$cache/vm-tree-$(key)
pin=$root/build/vm-tree

whole() { [ -e "$1/etc/orrery/kernels" ]; }
made() { stat --format=%Y "$1/etc/orrery/kernels"; }
age() { echo $((($(date +%s) - $(made "$1")) / 86400)); } # in days

# Every whole tree of this recipe, newest first. The first was made without a date in its name.
trees() {
    local tree
    for tree in "$base" "$base".[0-9]*; do
        if whole "$tree"; then printf '%s %s\n' "$(made "$tree")" "$tree"; fi
    done | sort -rn | cut -d' ' -f2-
}

# The tree that this checkout uses: the one it has been using, else the newest.
current() {
    local pinned
    pinned=$(readlink -- "$pin") || pinned=
    case $pinned in
        "$base" | "$base".[0-9]*) if whole "$pinned"; then echo "$pinned"; return; fi ;;
    esac
    trees | head -n 1
}

use() { # tree
    local users=$1.users
    mkdir -p "$root/build" "$users"
    ln -sfn -- "$1" "$pin.$$" && mv -T -- "$pin.$$" "$pin"
    ln -sfn -- "$pin" "$users/$(sha256sum <<< "$pin" | cut -c1-16)"
}

used() { # tree: does a checkout still point at it?
    local user
    for user in "$1".users/*; do
        if [ "$(readlink -- "$(readlink -- "$user")")" = "$1" ]; then return; fi
    done
    return 1
}

make_locked() { # tree, lock
    exec 9> "$2"
    if ! flock --nonblock 9; then
        say "another run is making it; waiting for that"
        flock 9
    fi
    whole "$1" || make_tree "$1" 9>&9
    exec 9>&-
}

renew() {
    local newest other
    newest=$(trees | head -n 1)
    if [ -z "$newest" ] || [ "$newest" = "$(current)" ] || [ "$(age "$newest")" -ge $old_after ]; then
        newest=$base.$(date +%Y%m%d-%H%M%S)
        make_locked "$newest" "$base.lock"
    fi
    use "$newest"
    for other in $(trees); do
        if [ "$other" != "$newest" ] && [ -d "$other.users" ] && ! used "$other"; then
            say "no checkout uses $other any more: rm -rf $other $other.users"
        fi
    done
    echo "$newest"
}

if [ -n "${ORRERY_VM_TREE:-}" ]; then
    case ${1:-} in
        --renew) die "ORRERY_VM_TREE names the tree, which is yours to renew" ;;
        --path | '')
            whole "$ORRERY_VM_TREE" || die "ORRERY_VM_TREE=$ORRERY_VM_TREE holds no VM tree"
            echo "$ORRERY_VM_TREE"
            exit ;;
    esac
fi

case ${1:-} in
    --path)
        tree=$(current)
        [ -n "$tree" ] || die "there is no VM tree at $base: make it with tools/vm/tree.sh"
        echo "$tree" ;;
    --mirror) mirror ;;
    --proxy) proxy_options ;;
    --renew)
        mkdir -p "$cache"
        renew ;;
    '')
        mkdir -p "$cache"
        tree=$(current)
        if [ -z "$tree" ]; then
            make_locked "$base" "$base.lock"
            tree=$base
        fi
        use "$tree"
        days=$(age "$tree")
        if [ "$days" -ge $old_after ]; then
            say "made $days days ago; 'make tree RENEW=1' takes newer kernels and QEMU, if there are any"
        fi
        echo "$tree" ;;
    *) die "unknown option '$1'; see the first lines of $0" ;;
esac
