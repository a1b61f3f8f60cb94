#!/bin/sh
# SPDX-License-Identifier: MIT
# Searches all states of a model, and shows that the search can fail.
#   check.sh MODEL.pml MACRO...    the model holds; with any one of the macros it does not
set -eu
model=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# search NAME FLAGS...: "holds", "fails", or the tool's complaint
search() {
    dir=$work/$1
    shift
    mkdir "$dir"
    (
        cd "$dir"
        spin "$@" -a "$model" >spin.log 2>&1 || { cat spin.log >&2; exit 1; }
        cc -O2 -w -DSAFETY -DMEMLIM=2048 -DVECTORSZ=2048 -o pan pan.c >cc.log 2>&1 || { cat cc.log >&2; exit 1; }
        ./pan -m1000000 >pan.log 2>&1 || { cat pan.log >&2; exit 1; }
    )
    if grep -q 'errors: [1-9]' "$dir/pan.log"; then
        echo fails
    elif grep -Eq 'max search depth too small|out of memory|Search not completed' "$dir/pan.log"; then
        echo incomplete
    elif grep -q 'errors: 0' "$dir/pan.log"; then
        echo holds
    else
        cat "$dir/pan.log" >&2
        exit 1
    fi
}

states() { sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' "$work/$1/pan.log"; }

bad=0
result=$(search whole)
if [ "$result" = holds ]; then
    echo "$(basename "$model"): holds in all $(states whole) states"
else
    echo "$(basename "$model"): $result; see the trail with: spin -a, cc pan.c, ./pan, spin -t -p" >&2
    grep -E 'assertion|pan:' "$work/whole/pan.log" >&2 || true
    bad=1
fi
for macro in "$@"; do
    result=$(search "$macro" "-D$macro")
    if [ "$result" = fails ]; then
        echo "$(basename "$model"): without it ($macro) something is lost, as it must be"
    else
        echo "$(basename "$model"): $macro makes no difference ($result): the model does not see what it protects" >&2
        bad=1
    fi
done
exit $bad
