#!/bin/bash
# draw.sh [--check] [ORRERY-VM]: draws the pictures of docs/interconnect.md and switch.md, or fails if they are not what the program
# draws today.
set -euo pipefail
check=''
if [ "${1:-}" = --check ]; then
    check=yes
    shift
fi
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
program=$(realpath -- "${1:-$here/../../build/release/bin/orrery-vm}")
into=$here
if [ -n "$check" ]; then
    into=$(mktemp -d)
    trap 'rm -rf "$into"' EXIT
fi

draw() { # NAME OPTION...
    "$program" "${@:2}" --picture "$into/$1.svg"
    [ -z "$check" ] || cmp -- "$here/$1.svg" "$into/$1.svg" || {
        echo "docs/pictures/$1.svg is not what orrery-vm draws: run docs/pictures/draw.sh and look at it" >&2
        return 1
    }
}

draw chain --cards 4
draw ring --cards 4 --topology ring
draw mesh --cards 6 --topology mesh --sku orrery-0
draw torus --topology "$here/torus.toml"
draw square --topology "$here/square.toml"
draw switch --cards 4 --topology switch
draw fat-tree --cards 8 --topology fat-tree
