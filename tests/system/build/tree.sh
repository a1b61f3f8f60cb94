#!/bin/bash
# The VM tree's life, with a mmdebstrap that makes an empty one: its archive is read to the end; the tree says when it is old, it is
# renewed beside the old one, and another checkout keeps what it uses until it asks itself.
set -euo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
fail() { echo "FAILED: $1" >&2; [ ! -e "$work/err" ] || cat "$work/err" >&2; exit 1; }

export XDG_CACHE_HOME=$work/cache ORRERY_DEBIAN_MIRROR=http://mirror.invalid/debian
unset ORRERY_VM_TREE
mkdir -p "$work/bin"
cat > "$work/bin/mmdebstrap" << 'END'
#!/bin/bash
made=$(mktemp -d)
mkdir -p "$made/etc/orrery" "$made/var/lib/dpkg"
echo "lts 6.12.$$" > "$made/etc/orrery/kernels"
printf 'Package: qemu-system-x86\nVersion: 1:11.1\n' > "$made/var/lib/dpkg/status"
tar --create --directory "$made" . || exit
rm -rf "$made"
# The real one has zeros behind its archive too, and may be late with them.
sleep 0.2
head -c 100K /dev/zero
END
chmod +x "$work/bin/mmdebstrap"
PATH=$work/bin:$PATH
for checkout in one two; do
    mkdir -p "$work/$checkout/tools"
    cp -r "$root/tools/vm" "$root/tools/setup" "$work/$checkout/tools/"
done
tree() { # checkout, option...
    local checkout=$1
    shift
    "$work/$checkout/tools/vm/tree.sh" "$@" 2> "$work/err"
}
grow_old() { touch --date='-20 days' "$1/etc/orrery/kernels"; }

! tree one --path || fail "a tree before there is one"
first=$(tree one) || fail "the first tree"
[ "$(tree two)" = "$first" ] || fail "two checkouts do not share the tree"
! grep -q 'days ago' "$work/err" || fail "a new tree is called old"

grow_old "$first"
[ "$(tree one)" = "$first" ] || fail "an old tree is not used any more"
[ "$(grep -c "20 days ago; 'make tree RENEW=1'" "$work/err")" = 1 ] || fail "an old tree does not say so in one line"

second=$(tree one --renew) || fail "renewing"
[ "$second" != "$first" ] && [ -e "$second/etc/orrery/kernels" ] || fail "no second tree"
[ "$(tree one --path)" = "$second" ] || fail "the first checkout does not use what it renewed"
[ "$(tree two --path)" = "$first" ] && [ -e "$first/etc/orrery/kernels" ] || fail "the second checkout lost its tree"
[ "$(tree two)" = "$first" ] || fail "the second checkout moves without being asked"

[ "$(tree two --renew)" = "$second" ] || fail "the second checkout makes another tree instead of taking the new one"
grep -q "no checkout uses $first any more: rm -rf $first" "$work/err" || fail "nobody says how to remove the old tree"
sleep 1.1 # a tree is named after the second of its making
[ "$(tree two --renew)" != "$second" ] || fail "to renew the newest makes no newer one"
! grep -q 'no checkout uses' <(grep "$second" "$work/err") || fail "a tree in use is called unused"

# A checkout whose tree was removed takes the newest.
rm -rf "$second"
[ "$(tree one --path)" = "$(tree two --path)" ] || fail "a removed tree leaves its checkout without one"
