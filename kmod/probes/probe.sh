#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# probe.sh OUTPUT DIRECTORY COMPILER FLAGS...
# Compiles every DIRECTORY/have_NAME.c and writes "#define ORR_HAVE_NAME 1" for each that compiles.
# Two controls make sure that the answers mean something: one that must compile and one that must not.
set -eu
output=$1
directory=$2
shift 2

log=$output.log
compiles() {
	"$@" -w -fsyntax-only "$source" >>"$log" 2>&1
}

: >"$log"
source=$directory/must_compile.c
if ! compiles "$@"; then
	echo "probe.sh: error: $source does not compile, so no probe can be trusted:" >&2
	cat "$log" >&2
	exit 1
fi
source=$directory/must_fail.c
if compiles "$@"; then
	echo "probe.sh: error: $source compiles, so no probe can be trusted" >&2
	exit 1
fi

{
	echo "/* SPDX-License-Identifier: GPL-2.0 */"
	echo "/* Made by probes/probe.sh. */"
	for source in "$directory"/have_*.c; do
		name=$(basename "$source" .c | tr '[:lower:]' '[:upper:]')
		if compiles "$@"; then
			echo "#define ORR_$name 1"
		else
			echo "/* ORR_$name is not set */"
		fi
	done
} >"$output.tmp"
mv "$output.tmp" "$output"
