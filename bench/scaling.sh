#!/usr/bin/env bash
# One table: examples a second by strategy, replicas, precision and micro-batch, and against one replica on as many cores.
# usage: bench/scaling.sh [ROUNDS] [SECONDS] [MODEL…]     (default: 3 rounds of 6 s, tiny small)
# Every line of a group trains the same step: CORES micro-batches, on one replica with all cores, on 2, 4, … CORES replicas in
# threads, and on as many processes under mpirun. If there are GPUs, one micro-batch on each of 1, 2, 4, … of them through
# NCCL, compared with one GPU. The rounds are interleaved; figures are medians over them. The last lines time the sum of base's
# gradients alone, against a copy that moves as many bytes.
# Environment: PRECISIONS ("f32 bf16"), MICRO_BATCHES (by default one size for each model, and 256 on GPUs), CORES and BUILD.
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${1:-3} seconds=${2:-6}
models=("${@:3}")
[ ${#models[@]} -gt 0 ] || models=(tiny small)
build=${BUILD:-build} precisions=${PRECISIONS:-f32 bf16} cores=${CORES:-$(nproc)}
bench=$build/bin/bench_scaling log=$(mktemp)
trap 'rm -f "$log"' EXIT
cmake --build "$build" --target bench_scaling >/dev/null
mpirun=(mpirun --allow-run-as-root --oversubscribe --bind-to none)
[ -e "$build/bin/libbertrand_mpi.so" ] && command -v mpirun >/dev/null && processes=yes || processes=
gpus=$(nvidia-smi --query-gpu=index --format=csv,noheader 2>/dev/null | wc -l || true)
declare -A micro_batch=([tiny]=32 [mini]=32 [small]=16 [medium]=16 [base]=8 [large]=4)

field() { sed -n "s/.*\"$1\":\"\?\([^,\"}]*\).*/\1/p"; }
# record STRATEGY REPLICAS MODEL PRECISION MICRO_BATCH EXAMPLES_OF_STEP JSON
record() { echo "$1 $2 $3 $4 $5 $6 $(field examples_per_second <<<"$7") $(field rss_MB <<<"$7")" >>"$log"; }

# measure MODEL PRECISION MICRO_BATCH
measure() {
  local model=$1 precision=$2 m=$3 step=$(($3 * cores)) n
  local any=("$bench" train --model "$model" --precision "$precision" --seconds "$seconds")
  local train=("${any[@]}" --micro-batches "$cores" --micro-batch "$m")
  record one 1 "$model" "$precision" "$m" "$step" "$("${train[@]}" --threads "$cores")"
  # The same examples in one micro-batch: what one replica does best.
  record one-whole 1 "$model" "$precision" "$step" "$step" "$("${any[@]}" --micro-batches 1 --micro-batch "$step" --threads "$cores")"
  for ((n = 2; n <= cores; ++n)); do
    ((cores % n == 0 && ((n & (n - 1)) == 0 || n == cores))) || continue  # powers of two that divide the cores, and all
    record threads "$n" "$model" "$precision" "$m" "$step" "$("${train[@]}" --threads "$cores" --replicas "$n")"
    [ -z "$processes" ] || record mpi "$n" "$model" "$precision" "$m" "$step" \
      "$("${mpirun[@]}" -n "$n" "${train[@]}" --threads $((cores / n)) 2>/dev/null)"
  done
}
measure_gpus() {
  local model=$1 precision=$2 m=$3 n
  for ((n = 1; n <= gpus; n *= 2)); do
    record nccl "$n" "$model" "$precision" "$m" $((m * n)) \
      "$("$bench" train --model "$model" --precision "$precision" --seconds "$seconds" --micro-batch "$m" --micro-batches "$n" --device "$(seq -s, -f 'cuda:%g' 0 $((n - 1)))")"
  done
}

for _ in $(seq "$rounds"); do
  for model in "${models[@]}"; do
    for precision in $precisions; do
      for m in ${MICRO_BATCHES:-${micro_batch[$model]}}; do measure "$model" "$precision" "$m"; done
      for m in ${MICRO_BATCHES:-256}; do measure_gpus "$model" "$precision" "$m"; done
    done
  done
  sum=$("$bench" sum --replicas "$cores" --threads "$cores" --seconds "$seconds")
  echo "sum-threads $cores $(field sum_s <<<"$sum") $(field copy_s <<<"$sum") $(field ratio <<<"$sum")" >>"$log"
  [ -z "$processes" ] && continue
  sum=$("${mpirun[@]}" -n "$cores" "$bench" sum --threads 1 --seconds "$seconds" 2>/dev/null)
  echo "sum-mpi $cores $(field sum_s <<<"$sum") $(field copy_s <<<"$sum") $(field ratio <<<"$sum")" >>"$log"
done

awk '
  function median(list,   n, i, j, t, a) {
    n = split(list, a, " ")
    for (i = 1; i < n; ++i) for (j = i + 1; j <= n; ++j) if (a[j] + 0 < a[i] + 0) { t = a[i]; a[i] = a[j]; a[j] = t }
    return a[int((n + 1) / 2)]
  }
  /^sum/ { s[$1] = s[$1] " " $3; c[$1] = c[$1] " " $4; r[$1] = r[$1] " " $5; next }
  {
    key = $1 " " $2 " " $3 " " $4 " " $5
    if (!(key in rate)) order[++keys] = key
    rate[key] = rate[key] " " $7; memory[key] = $8; step[key] = $6
    ++seen[key]
    if ($1 == "one-whole") best[$3 " " $4 " " $6, seen[key]] = $7
    if ($1 == "nccl" && $2 == 1) best["nccl " $3 " " $4 " " $5, seen[key]] = $7
    of[key, seen[key]] = $7
  }
  END {
    printf "%-10s %8s %-8s %-6s %12s %14s %18s %12s\n", "strategy", "replicas", "model", "type", "micro-batch", "examples/s", "of one replica", "process MB"
    for (k = 1; k <= keys; ++k) {
      key = order[k]; split(key, f, " "); ratios = ""
      whole = f[1] == "nccl" ? "nccl " f[3] " " f[4] " " f[5] : f[3] " " f[4] " " step[key]
      for (i = 1; i <= seen[key]; ++i) if (best[whole, i] > 0) ratios = ratios " " of[key, i] / best[whole, i]
      printf "%-10s %8d %-8s %-6s %12d %14.1f %17.3fx %12d\n", f[1], f[2], f[3], f[4], f[5], median(rate[key]), median(ratios), memory[key]
    }
    for (k in s) printf "%-12s 440 MB on each replica: %.3f s, a copy that moves as many bytes %.3f s: %.2fx\n", k, median(s[k]), median(c[k]), median(r[k])
  }' "$log"
