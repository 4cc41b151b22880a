#!/usr/bin/env bash
# Runs bounds() and ticks() of the page of a run: around equal values, and around values that differ in their last bits,
# lie a few ticks. Exits with 77 if there is no node.
# usage: tests/page_ticks.sh
set -euo pipefail
cd "$(dirname "$0")/../bert/report/page"
command -v node >/dev/null || { echo "SKIPPED: there is no node; hint: apt-get install nodejs"; exit 77; }
# A loop without an end is a failure too.
cat elements.js charts.js - <<'END' | timeout 20 node --max-old-space-size=200 - || { echo 'page_ticks.sh: expected node to end with 0, got another status'; exit 1; }
const tried = [[0.7, 0.7], [0.7, 0.7000000000000001], [0.33482142857142855, 0.3348214285714286], [0, 0], [-1e20, -1e20],
  [1e-12, 1.0000000000000002e-12], [1, 1 + 1e-11], [1, 2], [-3, 1e9]];
for (const values of tried)
  for (const log of [false, values[0] > 0]) {
    const [low, high] = bounds(values, log), all = ticks(low, high, 4, log);
    if (low < high && all.length > 0 && all.length < 20 && all.every(finite)) continue;
    console.error(`page_ticks.sh: ${values}: expected a few ticks, got ${all} of ${low} to ${high}`);
    process.exitCode = 1;
  }
// A curve of equal values that is smoothed.
for (let weight = 0; weight < 0.995; weight += 0.01) ticks(...bounds(smoothed(Array(200).fill(0.7), weight)), 5);
END
