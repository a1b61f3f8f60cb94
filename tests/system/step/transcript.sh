#!/bin/bash
# Makes the transcripts of docs/stepping.md: each command line in it that begins with "$ orrery-step" is run, and what it
# prints is put behind it. It is run on the recordings that stand here, which hold their firmware and its sources: so what
# it says does not depend on the firmware that happens to be built, only on orrery-step.
#   transcript.sh ORRERY-STEP           rewrite them
#   transcript.sh --record ORRERY-STEP  first record mixed.toml again (for short-slices.otrace with slices of 50 us), with the firmware of this build; then read the page: what
#                                       its text says of the decisions must still be so
#   transcript.sh --check ORRERY-STEP   fail if they are not what the program says
set -euo pipefail
check='' record=''
case $1 in
    --check) check=yes; shift ;;
    --record) record=yes; shift ;;
esac
program=$(realpath -- "$1")
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../../.." && pwd)
page=$root/docs/stepping.md
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
here=$root/tests/system/step
if [ -n "$record" ]; then
    "$program" run "$here/mixed.toml" -o "$here/mixed.otrace" > "$work/run"
    "$program" run "$here/mixed.toml" --policy slice_us=50 -o "$here/short-slices.otrace" > "$work/run"
fi
cp "$here"/{mixed.toml,mixed.otrace,short-slices.otrace} "$root"/docs/traces/two-cards-?.otrace "$work"/
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
                    eval "'$program' ${line#\$ orrery-step }" 2>&1 || status=$?
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
