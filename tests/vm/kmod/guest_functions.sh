# For scripts that run in the guest: loading and unloading the driver, reading its messages.
# shellcheck shell=sh

module=/lib/modules/$(uname -r)/orrery.ko

fail() {
    echo "FAILED: $*" >&2
    dmesg | tail -n 20 >&2
    exit 1
}

nodes() {
    count=0
    for node in /dev/accel/accel*; do
        if [ -c "$node" ]; then count=$((count + 1)); fi
    done
    echo $count
}

# Nodes come and go a moment after the module: the device file system runs in a thread of its own.
wait_for_nodes() {
    tries=0
    while [ "$(nodes)" != "$1" ]; do
        tries=$((tries + 1))
        [ $tries -lt 600 ] || fail "$(nodes) device nodes instead of $1"
        sleep 0.1
    done
}

load() {
    # shellcheck disable=SC2086 # a list
    insmod "$module" "$@" || fail "insmod"
}

unload() {
    rmmod orrery || fail "rmmod"
    wait_for_nodes 0
}
