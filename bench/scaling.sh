#!/usr/bin/env bash
# The study of training speed in one table: examples a second, memory, and the largest micro-batch that fits, by strategy,
# precision and micro-batch. It takes about three minutes by default.
# usage: bench/scaling.sh [ROUNDS] [SECONDS] [MODEL…]     (default: 1 round of 3 s, tiny)
# All lines of a model, precision and micro-batch train the same step, of CORES micro-batches:
#   one        one replica, one micro-batch after the other
#   one-whole  one replica, all examples in one micro-batch: what it does best; the others are compared with it
#   threads    replicas in threads of one process, with sums at the end of backward
#   mpi        as many processes under mpirun, with sums at the end of backward, and during backward
#   nccl       one micro-batch on each of 1, 2, 4, … GPUs, in the same two ways; compared with one GPU
# replica MB: the peak of the tensors of one replica. process MB: what its process had resident.
# fits: the largest micro-batch that the plan accepts, with as many replicas on this machine. What is larger is not trained, so
# that it ends no study: it has - in the place of figures.
# The rounds are interleaved; figures are medians over them. The last lines time the sum of base's gradients alone, against
# a copy that moves as many bytes.
# Environment: PRECISIONS ("f32 bf16"; f16 is slow on CPUs), MICRO_BATCHES (by default two sizes for each model, and 64 and 256 on GPUs), LENGTH
# (128 tokens), MEMORY (GB of each replica for `fits`; default what there is), CORES, BUILD, and SUMS= to leave out the last lines.
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${1:-1} seconds=${2:-3}
models=("${@:3}")
[ ${#models[@]} -gt 0 ] || models=(tiny)
build=${BUILD:-build} precisions=${PRECISIONS:-f32 bf16} cores=${CORES:-$(nproc)} length=${LENGTH:-128} memory=${MEMORY:-0}
bench=$build/bin/bench_scaling log=$(mktemp)
trap 'rm -f "$log"' EXIT
cmake --build "$build" --target bench_scaling >/dev/null
mpirun=(mpirun --allow-run-as-root --oversubscribe --bind-to none)
[ -e "$build/bin/libbertrand_mpi.so" ] && command -v mpirun >/dev/null && processes=yes || processes=
gpus=0  # that this build can use
[ ! -e "$build/bin/libbertrand_cuda.so" ] || gpus=$(nvidia-smi --query-gpu=index --format=csv,noheader 2>/dev/null | grep -c '^[0-9]' || true)
[ -e "$build/bin/libbertrand_nccl.so" ] || ((gpus <= 1)) || gpus=1
declare -A micro_batches=([tiny]="8 32" [mini]="8 32" [small]="4 16" [medium]="4 16" [base]="2 8" [large]="1 4")

field() { sed -n "s/.*\"$1\":\"\?\([^,\"}]*\).*/\1/p"; }
# launch PROCESSES ARGUMENT…: bench_scaling in one process, or in several
launch() {
  local n=$1; shift
  if ((n > 1)); then "${mpirun[@]}" -n "$n" "$bench" "$@" 2>/dev/null; else "$bench" "$@"; fi
}
# record STRATEGY SUMS REPLICAS EXAMPLES_OF_STEP PROCESSES PLACE…: asks what would fit there, and trains $model, $precision
# and $m if they do. PLACE: the flags of replicas and devices.
record() {
  local strategy=$1 sums=$2 n=$3 step=$4 processes_of_run=$5; shift 5
  local shape=(--model "$model" --precision "$precision" --length "$length" "$@")
  local fits=${fitting[$model $precision $strategy $n]:-} json='"examples_per_second":-,"peak_MB":-,"rss_MB":-,'
  [ -n "$fits" ] || fits=$(launch "$processes_of_run" fits "${shape[@]}" --micro-batches "$n" --memory "$memory" | field fits)
  fitting[$model $precision $strategy $n]=$fits
  ((m > fits)) || json=$(launch "$processes_of_run" train "${shape[@]}" --micro-batch "$m" --micro-batches $((step / m)) --sums "${sums/-/backward}" --seconds "$seconds")
  echo "$strategy $n $model $precision $m $sums $step $(field examples_per_second <<<"$json") $(field peak_MB <<<"$json")" \
    "$(field rss_MB <<<"$json") $fits" >>"$log"
}
declare -A fitting

# Of $model, $precision and $m on the CPU.
measure() {
  local step=$((m * cores)) n sums
  record one - 1 "$step" 1 --threads "$cores"
  m=$step record one-whole - 1 "$step" 1 --threads "$cores"
  for ((n = 2; n <= cores; ++n)); do
    ((cores % n == 0 && ((n & (n - 1)) == 0 || n == cores))) || continue  # powers of two that divide the cores, and all
    record threads end "$n" "$step" 1 --threads "$cores" --replicas "$n"
    [ -n "$processes" ] || continue
    for sums in end backward; do record mpi "$sums" "$n" "$step" "$n" --threads $((cores / n)); done
  done
}
measure_gpus() {
  local n sums
  for ((n = 1; n <= gpus; n *= 2)); do
    for sums in end backward; do
      ((n > 1)) || [ "$sums" = end ] || continue  # one GPU has nothing to sum
      record nccl "$sums" "$n" $((m * n)) 1 --device "$(seq -s, -f 'cuda:%g' 0 $((n - 1)))"
    done
  done
}

for _ in $(seq "$rounds"); do
  for model in "${models[@]}"; do
    for precision in $precisions; do
      for m in ${MICRO_BATCHES:-${micro_batches[$model]}}; do measure; done
      for m in ${MICRO_BATCHES:-64 256}; do measure_gpus; done
    done
  done
  [ -n "${SUMS-yes}" ] || continue
  sum=$("$bench" sum --replicas "$cores" --threads "$cores" --seconds "$seconds")
  echo "sum-threads $cores $(field sum_s <<<"$sum") $(field copy_s <<<"$sum") $(field ratio <<<"$sum")" >>"$log"
  [ -n "$processes" ] || continue
  sum=$(launch "$cores" sum --threads 1 --seconds "$seconds")
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
    key = $1 " " $2 " " $3 " " $4 " " $5 " " $6
    if (!(key in rate)) order[++keys] = key
    step[key] = $7; rate[key] = rate[key] " " $8; replica[key] = $9; process[key] = $10; fits[key] = $11
    of[key, ++seen[key]] = $8
    if ($1 == "one-whole") best[$3 " " $4 " " $7, seen[key]] = $8
    if ($1 == "nccl" && $2 == 1) best["nccl " $3 " " $4 " " $5, seen[key]] = $8
  }
  END {
    form = "%-9s %8s %-8s %-6s %-5s %11s %11s %14s %10s %10s %6s\n"
    printf form, "strategy", "replicas", "sums", "model", "type", "micro-batch", "examples/s", "of one replica", "replica MB", "process MB", "fits"
    for (k = 1; k <= keys; ++k) {
      key = order[k]; split(key, f, " "); ratios = ""
      whole = f[1] == "nccl" ? "nccl " f[3] " " f[4] " " f[5] : f[3] " " f[4] " " step[key]
      for (i = 1; i <= seen[key]; ++i) if (best[whole, i] + 0 > 0 && of[key, i] + 0 > 0) ratios = ratios " " of[key, i] / best[whole, i]
      rates = median(rate[key]); ratio = median(ratios)  # "-" or nothing of what was not trained
      printf form, f[1], f[2], f[6], f[3], f[4], f[5], rates == "-" ? rates : sprintf("%.1f", rates), ratio == "" ? "-" : sprintf("%.3fx", ratio), replica[key], process[key], fits[key]
    }
    for (k in s) printf "%-12s 440 MB on each replica: %.3f s, a copy that moves as many bytes %.3f s: %.2fx\n", k, median(s[k]), median(c[k]), median(r[k])
  }' "$log"
