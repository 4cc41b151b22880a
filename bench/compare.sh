#!/usr/bin/env bash
# One table: training steps here and in PyTorch, interleaved in the same run, against the machine's measured peak.
# usage: bench/compare.sh PYTHON TORCH_STEP [ROUNDS] [THREADS]
#   PYTHON      an interpreter that has torch            TORCH_STEP   the script that times the same step in torch
# Each round runs both sides of every workload once; the ratio is the median over rounds of PyTorch's time over ours.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${1:?usage: bench/compare.sh PYTHON TORCH_STEP [ROUNDS] [THREADS]}
torch_step=${2:?usage: bench/compare.sh PYTHON TORCH_STEP [ROUNDS] [THREADS]}
rounds=${3:-3} threads=${4:-2} build=${BUILD:-build}
cmake -S . -B "$build" >/dev/null
cmake --build "$build" --target bench >/dev/null
log=$(mktemp)
trap 'rm -f "$log"' EXIT

field() { sed -n "s/.*\"$1\": *\([0-9.]*\).*/\1/p"; }
for round in $(seq "$rounds"); do
  peak=$("$build/bin/bench_peak" "$threads" | field fma_gflops)
  for config in tiny small base; do
    torch=$("$python" "$torch_step" "$config" "$threads" --steps 5)
    ours=$("$build/bin/bench_step" "$config" "$threads" train 0 8)
    echo "$config $peak $(field median_s <<<"$torch") $(field median_s <<<"$ours") $(field gflops <<<"$ours") $(field rss_MB <<<"$torch") $(field rss_MB <<<"$ours")" >>"$log"
  done
done

printf '%-7s %12s %10s %8s %14s %10s %12s %10s\n' workload 'PyTorch s' 'ours s' ratio 'peak GFLOP/s' '% of peak' 'PyTorch MB' 'ours MB'
for config in tiny small base; do
  awk -v c="$config" '
    function median(a, n,   i, j, t) { for (i = 1; i < n; ++i) for (j = i + 1; j <= n; ++j) if (a[j] < a[i]) { t = a[i]; a[i] = a[j]; a[j] = t }; return a[int((n + 1) / 2)] }
    $1 == c { ++n; p[n] = $2; t[n] = $3; o[n] = $4; r[n] = $3 / $4; s[n] = 100 * $5 / $2; tm = $6; om = $7 }
    END { printf "%-7s %12.3f %10.3f %7.2fx %14.1f %9.1f%% %12d %10d\n", c, median(t, n), median(o, n), median(r, n), median(p, n), median(s, n), tm, om }' "$log"
done
