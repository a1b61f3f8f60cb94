#!/bin/sh
# firmware.sh CARDS: each bad firmware image gives its own message and a clean failure; after each the good one works.
set -u
. /tests/guest_functions.sh
cards=$1
image=/lib/firmware/orrery/orrery-fw.bin

cp $image /tmp/good.bin

# try NAME MESSAGE: what lies at $image must be refused with MESSAGE.
try() {
    dmesg -c >/dev/null
    load
    dmesg >/tmp/log
    [ "$(nodes)" = 0 ] || fail "$1: a card came up"
    [ "$(grep -c "$2" /tmp/log)" = "$cards" ] || fail "$1: no message '$2' for each card"
    # Exactly one line of ours says it, and nothing follows but the driver core's own line.
    [ "$(grep -c 'orrery .*: error' /tmp/log)" = "$cards" ] || fail "$1: more than one message"
    echo "$1: $(grep -m 1 'orrery .*: error' /tmp/log | sed 's/.*: error//')"
    rmmod orrery || fail "$1: rmmod"
    cp /tmp/good.bin $image
    load
    wait_for_nodes "$cards"
    kmod_work || fail "the good image after $1"
    unload
}

unload
rm $image
try missing 'orrery-fw.bin is missing: put it below'
: >$image
try empty 'orrery-fw.bin cannot be read: empty or damaged'
cp /images/header.bin $image
try header 'orrery-fw.bin is truncated: 100 bytes'
cp /images/truncated.bin $image
try truncated 'orrery-fw.bin is truncated: 5000 bytes of'
cp /bin/busybox $image
try garbage 'orrery-fw.bin is not an Orrery image'
cp /images/hw.bin $image
try hw 'built for hardware version 9.0, the card has 2.[0-9]'
cp /images/abi.bin $image
try abi 'orrery-fw.bin speaks ABI 9.0, this driver speaks 1.[0-9]'
cp /images/corrupted.bin $image
try corrupted 'refused the firmware: corrupted'
cp /images/unsigned.bin $image
try unsigned 'refused the firmware: it is not signed'
cp /images/key.bin $image
try key 'refused the firmware: it is signed with another key'
cp /images/signature.bin $image
try signature 'refused the firmware: it is signed with another key'
# Its crash raises an interrupt, at a time when nobody looks after the card but who boots it.
cp /images/crash.bin $image
try crash 'the firmware crashed while booting: progress .*, cause 0x2, pc 0x80000000'
load
wait_for_nodes "$cards"
