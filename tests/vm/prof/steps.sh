#!/bin/sh
# What happens within calls, of programs as they are: tasks and host tasks, nodes of graphs, barriers of a group.
set -eu
# column NAME of the rows of a table for which the awk expression holds; columns are $at["name"].
rows() { # TABLE EXPRESSION WHAT
    awk -F, '{ sub(/\r$/, "") } NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next } '"$2 { print $3 }" "$1"
}
count() { rows "$1" "$2" 1 | wc -l; }

# Four by four tiles: 4 of the diagonal, 6 below it, 10 updates; each task once, with the call that submitted it.
orrery-prof record -o /tmp/tasks.prof -- cholesky --tiles 4 --size 32
orrery-prof export /tmp/tasks.prof --csv /tmp/tasks
# shellcheck disable=SC2016 # awk's
{
    kernels='$at["of"] == "tasks" && $at["kind"] == "kernel"'
    for one in 'potrf 4' 'trsm 6' 'gemm 10'; do
        [ "$(count /tmp/tasks/step.csv "$kernels && \$at[\"name\"] == \"${one% *}\"")" = "${one#* }" ]
    done
    [ "$(rows /tmp/tasks/step.csv "$kernels" '$at["number"]' | sort -n | uniq | wc -l)" = 20 ]
    [ "$(count /tmp/tasks/step.csv "$kernels && \$at[\"end_ps\"] > \$at[\"begin_ps\"]")" = 20 ]
    rows /tmp/tasks/step.csv "$kernels" '$at["correlation"]' | sort >/tmp/asked
    rows /tmp/tasks/call.csv '$at["name"] == "orrTaskSubmit"' '$at["correlation"]' | sort >/tmp/submitted
    [ "$(sort -u /tmp/asked | wc -l)" = 20 ]
    [ -z "$(grep -vxFf /tmp/submitted /tmp/asked)" ]
    # Data that a task needs comes to its card before it: as a copy with its name.
    [ "$(count /tmp/tasks/step.csv '$at["of"] == "tasks" && $at["kind"] == "copy" && $at["name"] == "potrf"')" -ge 1 ]
    # Each is one kernel of the card's work.
    rows /tmp/tasks/step.csv "$kernels" '$at["stream"] " " $at["begin_ps"] " " $at["end_ps"]' | sort >/tmp/steps
    rows /tmp/tasks/work.csv '$at["operation"] == "kernel"' '$at["stream"] " " $at["begin_ps"] " " $at["end_ps"]' | sort >/tmp/work
    [ -s /tmp/steps ]
    [ -z "$(grep -vxFf /tmp/work /tmp/steps)" ]
}
orrery-prof report /tmp/tasks.prof --top 30 >/tmp/report
sed -n '/^  steps within calls/,/^$/p' /tmp/report
grep -Eq '^  gemm +kernel +task graph 1 +10 ' /tmp/report
orrery-prof trace /tmp/tasks.prof -o /tmp/trace.json
[ "$(grep -o '"cat":"step"' /tmp/trace.json | wc -l)" -ge 20 ]
grep -q '"name":"task graph 1, lane [0-9]*"' /tmp/trace.json
orrery-prof html /tmp/tasks.prof -o /tmp/tasks.html

# A graph of streams that was captured and is launched twice: eight chunks of a copy, a kernel and a copy back.
orrery-prof record -o /tmp/graph.prof -- overlap --quick
orrery-prof export /tmp/graph.prof --csv /tmp/graph
# shellcheck disable=SC2016 # awk's
{
    for launch in 1 2; do
        [ "$(count /tmp/graph/step.csv "\$at[\"of\"] == \"graph\" && \$at[\"round\"] == $launch && \$at[\"kind\"] == \"kernel\"")" = 8 ]
        [ "$(count /tmp/graph/step.csv "\$at[\"of\"] == \"graph\" && \$at[\"round\"] == $launch && \$at[\"kind\"] == \"copy\"")" = 16 ]
    done
    [ "$(rows /tmp/graph/step.csv '$at["of"] == "graph"' '$at["correlation"]' | sort -u)" = \
        "$(rows /tmp/graph/call.csv '$at["name"] == "orrGraphLaunch"' '$at["correlation"]' | sort -u)" ]
    [ "$(rows /tmp/graph/step.csv '$at["of"] == "graph"' '$at["lane"]' | sort -u | wc -l)" -gt 1 ]
}

# Thirty barriers of two members in streams.
orrery-prof record -o /tmp/group.prof -- planted rank_in_step
orrery-prof export /tmp/group.prof --csv /tmp/group
# shellcheck disable=SC2016 # awk's
for rank in 0 1; do
    [ "$(rows /tmp/group/step.csv "\$at[\"kind\"] == \"barrier\" && \$at[\"number\"] == $rank && \$at[\"members\"] == 2" \
        '$at["round"]' | sort -n | uniq)" = "$(seq 1 30)" ]
done
orrery-prof report /tmp/group.prof >/tmp/report
cat /tmp/report
grep -Eq '^  last at its barriers in streams:.* rank 1 \([1-9]' /tmp/report

# Calls of a group on the host, of two processes: two barriers, a gather, and a broadcast.
orrery-prof record -o /tmp/calls.prof -- umd_ipc_vm_test --gtest_filter=Of/Groups.MeetOnTheHostAndInStreams/0
orrery-prof export /tmp/calls.prof --csv /tmp/calls
# shellcheck disable=SC2016 # awk's
for rank in 0 1; do
    host="\$at[\"of\"] == \"group\" && \$at[\"number\"] == $rank && \$at[\"device\"] == \"\" && \$at[\"members\"] == 2"
    [ "$(rows /tmp/calls/step.csv "$host" '$at["round"] " " $at["kind"] " " $at["name"]' | sort -n)" = "1 barrier barrier
2 barrier barrier
3 gather gather
4 broadcast broadcast" ]
    [ "$(count /tmp/calls/step.csv "$host && \$at[\"end_ns\"] > \$at[\"begin_ns\"]")" = 4 ]
    for one in gather,orrGroupAllGather broadcast,orrGroupBroadcast; do
        asked=$(rows /tmp/calls/step.csv "$host && \$at[\"kind\"] == \"${one%,*}\"" '$at["process"] " " $at["correlation"]')
        rows /tmp/calls/call.csv "\$at[\"name\"] == \"${one#*,}\"" '$at["process"] " " $at["correlation"]' | grep -Fqx "$asked"
    done
done

# Nothing of it where nobody asks: a program without graphs and groups has no steps.
orrery-prof record -o /tmp/plain.prof -- vector_basics --quick
orrery-prof export /tmp/plain.prof --csv /tmp/plain
[ "$(wc -l </tmp/plain/step.csv)" = 1 ]
if orrery-prof report /tmp/plain.prof | grep 'steps within calls'; then exit 1; fi
