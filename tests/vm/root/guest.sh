#!/bin/sh
# In a guest with --root debian and two cards: packaged programs run beside ours.
fail() {
    echo "root: $*" >&2
    exit 1
}
grep -q '^13' /etc/debian_version || fail "this is no Debian 13"
[ "$(readlink -f /bin/sh)" = /usr/bin/dash ] || fail "the shell is not Debian's"
strace -o /tmp/calls -e trace=ioctl histogram --cards 2 /usr/share/common-licenses/GPL-3 >/tmp/out ||
    fail "histogram: $(cat /tmp/out)"
grep -q ' yes$' /tmp/out || fail "histogram: $(cat /tmp/out)"
grep -q 'ioctl(.*) = 0' /tmp/calls || fail "strace saw nothing of it"
[ "$(lspci -d 1af4:10f0 | wc -l)" = 2 ] || fail "lspci: $(lspci)"
lsmod | grep '^orrery' > /dev/null || fail "lsmod: $(lsmod)"
orrery-smi | grep running > /dev/null || fail "orrery-smi: $(orrery-smi)"
for library in libc.so.6 libstdc++.so.6; do
    ldd /usr/local/bin/histogram | grep "$library => /[a-z/]*lib/x86_64-linux-gnu/$library" > /dev/null || fail "$library is not Debian's"
done
changed=$(dpkg --verify libc6 libstdc++6 dash | grep -v '^missing')
[ -z "$changed" ] || fail "files of the image's own were overwritten: $changed"
echo changed >/usr/bin/a-new-program || fail "nothing can be written"
[ "$(cat data/deep/file)" = content ] || fail "--file"
echo from the guest >/share/out
