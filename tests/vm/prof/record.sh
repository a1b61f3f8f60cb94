#!/bin/sh
# A sample, recorded: its results and status are as ever, and each of its calls is in the profile.
set -eu
orrery-prof record -o /tmp/sample.prof -- vector_basics --quick
orrery-prof stat /tmp/sample.prof > /tmp/stat
cat /tmp/stat
grep -Eq '^  orrLaunchKernel +9 ' /tmp/stat
# Each launch is a kernel on the card, by its name, and begins and ends there.
[ "$(grep -Ec '^  (saxpy|reduce|scan_parts|scan_totals|scan_add|transpose|softmax|layer_norm) +[12] ' /tmp/stat)" = 8 ]
grep -Eq '^  copy +[0-9]+ ' /tmp/stat
grep -Eq '^  orrStreamDestroy +1 ' /tmp/stat
# `!` would not end the script.
if grep -E 'was told too late|did not end by exit' /tmp/stat; then exit 1; fi
orrery-prof trace /tmp/sample.prof -o /tmp/trace.json
[ "$(grep -o '"name":"orrLaunchKernel"' /tmp/trace.json | wc -l)" = 9 ]
[ "$(grep -o '"ph":"f"' /tmp/trace.json | wc -l)" -ge 9 ]
orrery-prof trace /tmp/sample.prof --perfetto -o /tmp/trace.pb
[ -s /tmp/trace.pb ]
# What is wrong with the command line of a sample is its own matter, and shows.
status=0
orrery-prof record -o /tmp/bad.prof -- vector_basics --nonsense || status=$?
[ $status = 2 ]
