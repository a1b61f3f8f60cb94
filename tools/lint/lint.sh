#!/bin/bash
# Every static check of the tree: formatting, clang-tidy, shellcheck, checkpatch, sparse.
#   lint.sh [format|tidy|shell|checkpatch|sparse]...     (default: all)
# Goes on after a failing check, names those that failed at the end, and exits non-zero then.
set -uo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
cd -- "$root" || exit 1
build=build/release

checks=("$@")
[ ${#checks[@]} -gt 0 ] || checks=(format shell checkpatch sparse tidy)

# Tracked and new files alike, so that a file is checked before its first commit.
files() { git ls-files --cached --others --exclude-standard -- "$@"; }

format() {
    # Kernel code and the C contracts keep kernel style; checkpatch looks after those.
    files '*.h' '*.hpp' '*.cc' | grep -vE '^(kmod|emulator/include|firmware/include)/' |
        xargs -d '\n' clang-format-19 --dry-run -Werror
}

tidy() {
    [ -e $build/compile_commands.json ] || { echo "lint: no $build: run 'make build' first" >&2; return 1; }
    # A file is checked again only when it, a header, the profile or the flags have changed since it was clean.
    local stamps=$build/lint headers flags
    mkdir -p "$stamps"
    headers=$(files '*.h' '*.hpp' .clang-tidy | xargs -d '\n' cat | sha256sum | cut -c1-64)
    flags=$(sha256sum < $build/compile_commands.json | cut -c1-64)
    local file key
    files 'emulator/*.cc' 'firmware/*.cc' 'umd/*.cc' 'tools/*.cc' | while read -r file; do
        grep -q "\"file\": \"$root/$file\"" $build/compile_commands.json || continue # not built for the host
        key=$( (echo "$headers $flags $file"; cat "$file") | sha256sum | cut -c1-64)
        [ -e "$stamps/$key" ] || printf '%s\n%s\n' "$file" "$stamps/$key"
    done | xargs -r -d '\n' -n 2 -P "$(nproc)" sh -c '
        clang-tidy-19 --quiet -p '$build' "$1" 2>/dev/null && : > "$2"' tidy
}

shell() {
    files '*.sh' '.ci/run' | xargs -d '\n' shellcheck --severity=warning
}

checkpatch() { tools/vm/checkpatch.sh; }
sparse() { tools/vm/kbuild.sh --sparse; }

failed=()
for check in "${checks[@]}"; do
    case $check in
        format | tidy | shell | checkpatch | sparse) ;;
        *) echo "lint: unknown check '$check'; there are format, tidy, shell, checkpatch, sparse" >&2; exit 2 ;;
    esac
    echo "lint: $check"
    "$check" || failed+=("$check")
done
[ ${#failed[@]} -eq 0 ] || { echo "lint: failed: ${failed[*]}" >&2; exit 1; }
echo "lint: clean"
