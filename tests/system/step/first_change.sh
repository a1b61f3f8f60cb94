#!/bin/bash
# Does what docs/first-change.md says, in a copy of the firmware: makes its change (```diff), builds it, and runs the commands
# behind "$ " in it from the top of that copy.
#   first_change.sh BUILD           all must succeed, and say what the page is about
#   first_change.sh --write BUILD   puts what they print into the page; then read the page again
set -euo pipefail
write=''
if [ "$1" = --write ]; then write=yes; shift; fi
build=$(realpath -- "$1")
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../../.." && pwd)
page=$root/docs/first-change.md
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
mkdir -p "$copy"/{build/release,docs,emulator,tools/make}
cp -r "$root/firmware" "$copy"/
cp -r "$root/emulator/include" "$copy/emulator"/
cp -r "$root/docs/traces" "$copy/docs"/
cp -r "$build/firmware" "$copy/build/release"/
ln -s "$build/bin" "$copy/build/release/bin"
sed -n '/^```diff$/,/^```$/{/^```/d;p}' "$page" > "$copy/change.diff"
[ "$(grep -c '^[+-][^+-]' "$copy/change.diff")" -le 12 ] || { echo "the change is no longer one of ten lines" >&2; exit 1; }

# In place of the build: the same commands, for what the change touches, in the copy.
touched=$(sed -n 's/^+++ b\///p' "$copy/change.diff" | xargs -n 1 basename)
cat > "$copy/tools/make/build.sh" <<END
#!/bin/bash
set -euo pipefail
[ "\$*" = "--for run release firmware" ] || { echo "the page builds something else: \$*" >&2; exit 1; }
ninja -C "$build" -t commands firmware |
    grep -E -- "-o [^ ]*/($(echo "$touched" | paste -sd'|'))\\.o|-o [^ ]*orrery-fw(-stripped)?\\.elf|orrery-fwsign (sign|symbols)|build_id\\.cmake" |
    grep -v -- '/firmware/gcc/' |
    sed 's#$build#$copy/build/release#g; s#$root/#$copy/#g; s#=$root=#=$copy=#g' > "$copy/build.commands"
[ "\$(wc -l < "$copy/build.commands")" -ge 5 ] || { echo "the firmware is built otherwise than this test knows" >&2; exit 1; }
bash -e "$copy/build.commands" > /dev/null
END
chmod +x "$copy/tools/make/build.sh"
(cd "$copy" && patch -s -p1 < change.diff) || { echo "the change does not fit the firmware any more" >&2; exit 1; }

export PATH="$build/bin:$PATH"
cd "$copy"
fresh=$(
    inside=''
    while IFS= read -r line; do
        case $line in
            '```console') inside=yes ;;
            '```') inside='' ;;
            '$ '*)
                if [ -n "$inside" ]; then
                    printf '%s\n' "$line"
                    bash -c "${line#\$ }" 2>&1 | sed 's/[[:space:]]*$//' || { echo "FAILED: $line" >&2; exit 1; }
                    continue
                fi ;;
            *) if [ -n "$inside" ]; then continue; fi ;;
        esac
        printf '%s\n' "$line"
    done < "$page"
)
if [ -n "$write" ]; then
    printf '%s\n' "$fresh" > "$page"
    exit 0
fi
expect() { grep -qE -- "$1" <<< "$fresh" || { printf '%s\n' "$fresh"; echo "FAILED: nothing says '$1'" >&2; exit 1; }; }
expect 'of [0-9]+ and [0-9]+ decisions over engines the first [0-9]+ are the same, then:'
expect '^mallory .* ms'
expect 'the first [0-9]+ decisions are the same; decision [0-9]+ differs:'
expect '=> .*mallory.* chosen'
expect 'has used more for its weight'
expect '=> +[0-9]+ .*weight_that_counts'
echo PASSED
