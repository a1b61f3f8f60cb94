#!/bin/sh
# The module is loaded again: the links to the switch stay up, and cards get the nodes that they had.
set -u
# shellcheck source=tests/vm/kmod/guest_functions.sh
. /tests/guest_functions.sh
for life in first second third; do
    multicast_vm_test --gtest_filter=Multicast.EachOfTwelveWorks || fail "$life life"
    unload
    load
    wait_for_nodes 8
done
