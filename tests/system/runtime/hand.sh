#!/bin/bash
# hand.sh: for scripts that run a VM whose guest asks the host for something by files on the share: /share/NAME.N, N from 0 on,
# answered by /share/NAME.N.done. To be sourced.

share=$(mktemp -d)
run=
finish() {
    [ -z "$run" ] || kill "$run" 2>/dev/null || true
    rm -rf -- "$share"
}
trap finish EXIT

# NAME ANSWER COMMAND...: runs COMMAND, a VM, and calls `ANSWER N` for each thing that is asked for; what it prints is the answer.
# Leaves COMMAND's status in $status, and in $number how often it was asked.
serve() {
    local name=$1 answer=$2
    shift 2
    "$@" &
    run=$!
    number=0
    while kill -0 "$run" 2>/dev/null; do
        if [ ! -e "$share/$name.$number" ]; then
            sleep 0.02
            continue
        fi
        "$answer" "$number" >"$share/answer"
        mv "$share/answer" "$share/$name.$number.done"
        number=$((number + 1))
    done
    status=0
    # shellcheck disable=SC2034 # for the script that sources this
    wait "$run" || status=$?
    run=
}

# LOGS NUMBER: the control socket of a card of the VM with these logs, or of a switch, which are counted on behind the cards.
control_socket() {
    sed -n '/"cards"/,$ s/.*"control": "\([^"]*\)".*/\1/p' "$1/run.json" | sed -n "$(($2 + 1))p"
}

# SOCKET: gives the card what comes in, a command a line, and prints its answers.
command_card() {
    perl -MIO::Socket::UNIX -e 'my $socket = shift; my $s = IO::Socket::UNIX->new(Peer => $socket) or die "$socket: $!\n";
        while (<STDIN>) { print $s $_; while (my $line = <$s>) { print $line; last if $line =~ /^(ok|error)/ } }' "$1"
}

# on|off LOG: somebody is connected to the debugger's port of the card with this log, as long as which it stands, or no more.
debugger_of_card=
hold_card() {
    if [ "$1" = on ]; then
        local port
        port=$(sed -n 's/.*gdb may connect to 127.0.0.1:\([0-9]*\)$/\1/p' "$2")
        exec {debugger_of_card}<>"/dev/tcp/127.0.0.1/$port"
    else
        exec {debugger_of_card}>&-
    fi
}
