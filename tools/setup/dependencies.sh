#!/bin/bash
# Writes the tables of docs/dependencies.md out of the package lists of tools/setup and tools/vm/tree.
#   dependencies.sh          rewrite the tables
#   dependencies.sh --check  fail if they are not up to date
set -euo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
document=$root/docs/dependencies.md

table() { # package list
    echo
    echo '| package | why |'
    echo '|---|---|'
    awk '/^#/ || !NF { next } { name = $1; $1 = ""; sub(/^ /, ""); printf "| `%s` | %s |\n", name, $0 }' "$1"
    echo
}

fresh=$(
    while IFS= read -r line; do
        case $line in
            '<!-- table: '*)
                skipping=yes
                echo "$line"
                source=${line#<!-- table: }
                table "$root/${source% -->}" ;;
            '<!-- end -->') skipping=''; echo "$line" ;;
            *) [ -n "${skipping:-}" ] || printf '%s\n' "$line" ;;
        esac
    done < "$document"
)
if [ "${1:-}" = --check ]; then
    diff -u "$document" <(printf '%s\n' "$fresh") ||
        { echo "docs/dependencies.md is not up to date: run tools/setup/dependencies.sh" >&2; exit 1; }
else
    printf '%s\n' "$fresh" > "$document"
fi
