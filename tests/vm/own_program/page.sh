#!/bin/bash
# Does what a page of docs/ says, from an empty folder: writes its files, runs its commands, and compares what the last one
# prints with what the page shows (times, addresses and line ends may differ).   page.sh BUILD LOGS PAGE FROM TO: between these two headings
set -euo pipefail
ORRERY=$(realpath -- "$1")
export ORRERY
logs=$2
page=$3 from=$4 to=$5
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
cd "$work"
fail() { echo "FAILED: $1" >&2; exit 1; }

kind='' name='' commands='' shown='' here=''
while IFS= read -r line; do
    case $line in
        "$from") here=yes ;;
        "$to") break ;;
    esac
    [ -n "$here" ] || continue
    case $line in
        '```') kind='' name='' ;;
        '```'*) kind=${line#'```'} ;;
        *) case $kind in
            cpp)
                if [ -z "$name" ]; then name=${line#// }; else printf '%s\n' "$line" >> "$name"; fi ;;
            sh) [[ $line = 'export ORRERY='* ]] || commands+=$line$'\n' ;;
            text) shown+=$line ;;
        esac ;;
    esac
done < "$page"
[ "$(find . -type f | wc -l)" = 3 ] || fail "the page's files are $(ls)"
[ "$(wc -l <<< "${commands%$'\n'}")" = 3 ] || fail "the page has other commands: $commands"

# The limit of time and the place for logs are a test's own.
commands=${commands/'orrery-vm --'/"orrery-vm --timeout 240 --logs $logs --"}
printed=$(bash -euc "$commands") || fail "the commands end with status $?"
echo "$printed"
times() { tr -d ' \n' | sed -E 's/[0-9.]+(us|GB)/N\1/g; s/0x[0-9a-f]+/0xN/g'; }
[ "$(times <<< "$printed")" = "$(times <<< "$shown")" ] || fail "printed '$printed', the page shows '$shown'"

# The rest is of folders and not of pages.
[ "$from" = '# A program of your own' ] || exit 0
# What the guest writes there stays, and it starts there.
"$ORRERY/bin/orrery-vm" --cards 0 --no-module --timeout 240 --logs "$logs" -- \
    sh -c "pwd > written && grep -c ORR_KERNEL $(ls ./*_kernel.cc)" < /dev/null > out
[ "$(cat written)" = "$work" ] || fail "the command did not start in the folder"
[ "$(cat out)" = 1 ] || fail "the folder's files are not there"

# Where the guest has files of its own.
cd /usr
status=0
"$ORRERY/bin/orrery-vm" --cards 0 --no-module -- ls ./bin 2> "$work/refused" || status=$?
[ $status = 120 ] || fail "status $status for a command in /usr"
grep -q 'where the guest has files of its own' "$work/refused" || fail "$(cat "$work/refused")"
