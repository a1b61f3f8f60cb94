#!/bin/bash
# skus.sh ORRERY_PROF FOLDER: the same work on two kinds of cards, each limited by what it is meant for.
set -euo pipefail
prof=$1 folder=$2
rm -rf "$folder"
mkdir -p "$folder"
"$prof" sku-compare --quick --keep "$folder" --csv "$folder/skus.csv" --html "$folder/skus.html" orrery-1 orrery-edge | tee "$folder/text"
# class sku card ps throughput cards limit share rate static
limits() { awk -F, -v class="$1" -v limit="$2" '$1 == class { n++; if ($7 != limit || $8 < 0.6) { print; exit 1 } } END { exit n != 2 }' "$folder/skus.csv"; }
limits compute compute
limits memory "VRAM bandwidth"
limits latency "latency of memory"
limits launch launches
limits copies "PCIe bandwidth"
limits link links
# Rates follow from the SKU files: 800 and 17 GB/s of VRAM, 400 and 10 Gbit/s of links.
between() { awk -F, -v class="$1" -v least="$2" -v most="$3" '$1 == class && $2 == "orrery-edge" && $6 > least && $6 < most { found = 1 } END { exit !found }' "$folder/skus.csv"; }
between memory 45 48
between link 38 41
between copies 10 11
# All work was counted, and has an estimate.
awk -F, 'NR > 1 && ($10 <= 0 || $15 == 0 || $15 != $16 || $17 != "") { print; exit 1 }' "$folder/skus.csv"
grep -q '^Cards of each for one of orrery-1' "$folder/text"
grep -q '<svg' "$folder/skus.html"
# Its profiles are as others.
"$prof" stat "$folder/orrery-edge/memory.prof" | grep -E '^  triad +1 ' >/dev/null
