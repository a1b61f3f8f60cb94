#!/bin/bash
# Makes the transcripts of docs/stepping.md: each command line in it that begins with "$ orrery-step" is run, and what it
# prints is put behind it. It is run on a recording that stands here, and without symbols: they would come and go with the
# firmware that happens to be built.
#   transcript.sh ORRERY-STEP          rewrite them
#   transcript.sh --check ORRERY-STEP  fail if they are not what the program says
set -euo pipefail
check=''
if [ "$1" = --check ]; then check=yes; shift; fi
program=$(realpath -- "$1")
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../../.." && pwd)
page=$root/docs/stepping.md
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$root"/tests/system/step/mixed.{toml,otrace} "$work"/
cd "$work"

fresh=$(
    inside=''
    while IFS= read -r line; do
        case $line in
            '```console') inside=yes; printf '%s\n' "$line" ;;
            '```') inside=''; printf '%s\n' "$line" ;;
            '$ orrery-step '*)
                printf '%s\n' "$line"
                if [ -n "$inside" ]; then
                    # The exit status is part of what is shown only if it is not 0.
                    status=0
                    eval "'$program' ${line#\$ orrery-step } --elf none" 2>&1 || status=$?
                    [ "$status" = 0 ] || echo "(exit status $status)"
                fi ;;
            *) [ -n "$inside" ] || printf '%s\n' "$line" ;;
        esac
    done < "$page"
)
if [ -n "$check" ]; then
    diff -u "$page" <(printf '%s\n' "$fresh") ||
        { echo "docs/stepping.md is not what orrery-step says: run tests/system/step/transcript.sh $program" >&2; exit 1; }
else
    printf '%s\n' "$fresh" > "$page"
fi
