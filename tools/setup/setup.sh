#!/bin/bash
# Installs the Debian packages of the PURPOSES (packages/*.txt: run, test, lint; all if none is given) as far as they
# are missing. With everything there it takes some milliseconds.
#   setup.sh [PURPOSE...]          install
#   setup.sh --check [PURPOSE...]  only say what is missing; fails if something is
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)

say() { printf 'setup: %s\n' "$*"; }
die() { printf 'setup: error: %s\n' "$*" >&2; exit 1; }

mode=install
if [ "${1:-}" = --check ]; then mode=check; shift; fi
[ $# -gt 0 ] || set -- run test lint

declare -A reason=()
wanted=()
for purpose in "$@"; do
    [ -r "$here/packages/$purpose.txt" ] || die "there is no purpose '$purpose'; see the first lines of $0"
    while read -r package why; do
        case $package in '' | '#'*) continue ;; esac
        wanted+=("$package")
        reason[$package]=$why
    done < "$here/packages/$purpose.txt"
done

list() { local p; for p in "$@"; do printf '  %-30s %s\n' "$p" "${reason[$p]}"; done; }

system=$(. /etc/os-release 2>/dev/null && echo "${ID:-} ${VERSION_ID:-}") || system=unknown
case $system in
    'debian 12' | 'debian 13') ;;
    *)
        echo "These Debian packages, or their like, are needed:"
        list "${wanted[@]}"
        die "this is '$system'; only Debian 12 and 13 are set up automatically (see the list above)" ;;
esac

declare -A installed=()
while read -r state package; do
    [ "$state" = ii ] && installed[$package]=yes
done < <(dpkg-query --show --showformat='${db:Status-Abbrev} ${Package}\n' "${wanted[@]}" 2>/dev/null)
missing=()
for package in "${wanted[@]}"; do
    [ -n "${installed[$package]:-}" ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

say "${#missing[@]} Debian packages are missing:"
list "${missing[@]}"
[ "$mode" = install ] || exit 1

as_root=(env DEBIAN_FRONTEND=noninteractive)
if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null ||
        die "neither root nor sudo: as root, run 'apt-get update && apt-get install ${missing[*]}'"
    say "installing them through sudo"
    # sudo drops the environment, and with it the proxy.
    as_root=(sudo env DEBIAN_FRONTEND=noninteractive)
    for variable in http_proxy https_proxy no_proxy; do
        [ -z "${!variable:-}" ] || as_root+=("$variable=${!variable}")
    done
fi
log=$(mktemp)
trap 'rm -f -- "$log"' EXIT
apt() { # apt-get's arguments; what it does is told by relay.sh
    "${as_root[@]}" apt-get --quiet --yes -o DPkg::Lock::Timeout=300 "$@" 2>&1 | tee "$log" | sed -unE '
        s/^Get:[0-9]+ [^ ]+ [^ ]+ [^ ]+ ([^ ]+).*/progress: packages: fetching \1/p
        s/^(Unpacking|Setting up) ([^ ]+).*/progress: packages: \1 \2/p' | "$here/../make/relay.sh"
}
say "apt-get update"
# A broken third-party source is not our business; if a package of ours is missing, the next step says so.
apt update || say "apt-get update failed; going on"
say "apt-get install (${#missing[@]} packages and what they need)"
if ! apt --no-install-recommends install "${missing[@]}"; then
    tail -n 25 "$log" >&2
    die "apt-get install failed (above)"
fi
say "done"
