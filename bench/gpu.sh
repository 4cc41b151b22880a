#!/usr/bin/env bash
# One table: training and inference on a GPU here and in PyTorch, interleaved, beside what the GPU's products and copies reach.
# usage: bench/gpu.sh [--device cuda:0] [--peer PYTHON TORCH_GPU] [--peers "tuned compiled stock"] [--workloads "NAME ..."]
#                     [--rounds 1] [--seconds 4] [--precision bf16] [--log FILE [--append]] [--small]
#                     [-- FLAGS_OF_BENCH_STEP]
#   --peer       an interpreter with torch and transformers, and the script that does the same work in them
#   --workloads  of base-128-b256 base-128-b32 base-512-b64 large-128-b256 wikipedia-512-b64 mrpc-b32 infer-1x128
#   --append     keep what the log holds and make one table of all of it, if the GPU is yours for a few minutes only
#   --small      a tiny model and few short sequences, for trying this script out (--device emulated-cuda); its figures mean nothing
# Each round runs ours, a peer, ours, the next peer, …; figures are medians over the rounds; ratios are of real tokens a
# second. --log keeps the JSON line of every run, FILE.err what the peers write to stderr. BUILD names the build directory; if
# it does not exist it is configured for the GPU of this machine. Of one that was built elsewhere its folder bin is enough.
set -euo pipefail
cd "$(dirname "$0")/.."
device=cuda:0 python='' script='' peers='tuned compiled stock' rounds=1 seconds=4 precision=bf16 log='' append='' small='' failed='' build=${BUILD:-build}
workloads='base-128-b256 base-128-b32 base-512-b64 large-128-b256 wikipedia-512-b64 mrpc-b32 infer-1x128'
more=(--measured-products)
while (($#)); do
  case $1 in --peer) values=2 ;; --device | --peers | --workloads | --rounds | --seconds | --precision | --log) values=1 ;; *) values=0 ;; esac
  (($# > values)) || { echo "gpu.sh: $1: expected $values more, got $(($# - 1)); the first lines of bench/gpu.sh say what there is" >&2; exit 2; }
  case $1 in
    --device) device=$2; shift 2 ;;
    --peer) python=$2 script=$3; shift 3 ;;
    --peers) peers=$2; shift 2 ;;
    --workloads) workloads=$2; shift 2 ;;
    --rounds) rounds=$2; shift 2 ;;
    --seconds) seconds=$2; shift 2 ;;
    --precision) precision=$2; shift 2 ;;
    --log) log=$2; shift 2 ;;
    --append) append=1; shift ;;
    --small) small=1; shift ;;
    --) shift; more+=("$@"); break ;;
    *) echo "gpu.sh: unknown argument $1; the first lines of bench/gpu.sh say what there is" >&2; exit 2 ;;
  esac
done
[[ -n $python ]] || peers=''
if [[ -z $log ]]; then
  [[ -z $append ]] || { echo "gpu.sh: --append: expected a --log that is kept, got none" >&2; exit 2; }
  log=$(mktemp)
  trap 'rm -f "$log"; [[ -n $failed ]] || rm -f "$log.err"' EXIT
fi
[[ -n $append ]] || { : >"$log"; rm -f "$log.err"; }
# shellcheck source=/dev/null
[[ ! -f .deps/environment.sh ]] || . .deps/environment.sh
if [[ -f $build/CMakeCache.txt || ! -x $build/bin/bench_step ]]; then
  if [[ ! -f $build/CMakeCache.txt ]]; then
    # As in scripts/test_gpu.sh; without a GPU (--device emulated-cuda) with what CMake finds.
    capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1 | tr -d .) || capability=''
    cmake -S . -B "$build" -G "$(command -v ninja >/dev/null && echo Ninja || echo 'Unix Makefiles')" -DCMAKE_BUILD_TYPE=Release \
      ${capability:+-DBERTRAND_CUDA=ON "-DCMAKE_CUDA_ARCHITECTURES=$capability-real"} >/dev/null
  fi
  cmake --build "$build" --target bench_step bench_ceiling -j "$(nproc)" >/dev/null
fi
bin=$build/bin

field() { sed -n "s/.*\"$1\": *\"\{0,1\}\([^,\"}]*\).*/\1/p"; }

# ours NAME, theirs NAME PEER: one run of a workload, its JSON line in the log behind its name
workload() {  # sets model, batch, length, ours_flags, task
  ours_flags=() task=pretrain
  case $1 in
    base-128-b256) model=base batch=256 length=128 ;;
    base-128-b32) model=base batch=32 length=128 ;;
    base-512-b64) model=base batch=64 length=512 ;;
    large-128-b256) model=large batch=256 length=128 ;;
    wikipedia-512-b64) model=base batch=64 length=512 ours_flags=(--lengths wikipedia) task=pretrain-real ;;
    mrpc-b32) model=base batch=32 length=128 ours_flags=(--lengths mrpc --head classify) task=mrpc ;;
    infer-1x128) model=base batch=1 length=128 task=infer ;;
    *) echo "gpu.sh: unknown workload $1" >&2; exit 2 ;;
  esac
  block=20
  if [[ -n $small ]]; then model=tiny batch=$((batch > 2 ? 2 : batch)) length=$((length / 8)) block=1 seconds=0; fi
}
ours() {
  local mode=train json
  [[ $task == infer ]] && mode=infer
  # 30528 rows of word embeddings, as the tuned peer has: a multiple of 8 that lets every row begin on 16 bytes.
  json=$("$bin/bench_step" "$model" 1 $mode "$batch" "$seconds" --device "$device" --precision "$precision" --length "$length" \
    --vocabulary 30528 --block "$block" "${ours_flags[@]}" "${more[@]}") || { failed=1 json='{"failed":1}'; echo "gpu.sh: ours failed on $1" >&2; }
  echo "$1 ours $json" >>"$log"
}
theirs() {
  local json steps=(--blocks 5 --steps 20)
  echo "== $1 $2" >>"$log.err"
  [[ -n $small ]] && steps=(--blocks 1 --steps 1)
  json=$("$python" "$script" "$task" "$2" --model "$model" --batch "$batch" --seq "$length" --precision "$precision" "${steps[@]}" 2>>"$log.err" | tail -1) || json=''
  [[ -n $json ]] || { failed=1 json='{"failed":1}'; echo "gpu.sh: $2 failed on $1; see $log.err" >&2; }
  echo "$1 $2 $json" >>"$log"
}

ceiling() { "$bin/bench_ceiling" --device "$device" ${small:+--size 64 --seconds 0}; }
before=$(ceiling)
echo "ceiling: $before"
for _ in $(seq "$rounds"); do
  for name in $workloads; do
    workload "$name"
    ours "$name"
    for peer in $peers; do
      theirs "$name" "$peer"
      ours "$name"
    done
  done
done

matmul=$(field matmul_tflops <<<"$before")
# Of all that the log holds, in its order.
workloads=$(awk '!seen[$1]++ { print $1 }' "$log")
peers=$(awk '$2 != "ours" && !seen[$2]++ { print $2 }' "$log")
# of NAME WHO FIELD: every value of a field in the log. median: of the lines of stdin; - if there are none
of() { grep -a "^$1 $2 " "$log" | field "$3" || true; }
last_loss() { grep -a "^$1 $2 " "$log" | sed -n 's/.*"loss\(es\)\{0,1\}": *\[\{0,1\}\([^]}]*, *\)*\([^],} []\{1,\}\)[]}].*/\3/p' || true; }
median() { sort -g | awk '{ v[NR] = $1 } END { if (NR) print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2; else print "-" }'; }
printf '%-18s %9s %8s %7s %10s %11s %8s %7s %7s %7s' workload 'ours ms' 'host ms' spread 'seq/s' 'tokens/s' TFLOP/s '% ceil' GiB loss
for peer in $peers; do printf ' | %11s %7s %7s %7s' "$peer ms" ratio GiB loss; done
echo
for name in $workloads; do
  ms=$(of "$name" ours ms | median) tokens=$(of "$name" ours real_tokens_per_s | median) gflops=$(of "$name" ours gflops | median)
  spread=$(of "$name" ours ms | sort -g | awk '{ v[NR] = $1 } END { if (NR) printf "%.1f%%", 100 * (v[NR] / v[1] - 1); else print "-" }')
  printf '%-18s %9s %8s %7s %10s %11s %8s %7s %7s %7s' "$name" "$ms" "$(of "$name" ours host_ms | median)" "$spread" "$(of "$name" ours sequences_per_s | median)" "$tokens" \
    "$(awk -v g="$gflops" 'BEGIN { print g == "-" ? "-" : sprintf("%.4g", g / 1e3) }')" \
    "$(awk -v g="$gflops" -v m="$matmul" 'BEGIN { print g == "-" ? "-" : sprintf("%.1f", g / m / 10) }')" "$(of "$name" ours peak_memory_gib | median)" \
    "$(last_loss "$name" ours | median)"
  for peer in $peers; do
    their_tokens=$(of "$name" "$peer" real_tokens_per_s | median)
    printf ' | %11s %7s %7s %7s' "$(of "$name" "$peer" ms | median)" \
      "$(awk -v o="$tokens" -v t="$their_tokens" 'BEGIN { print o == "-" || t == "-" ? "-" : sprintf("%.2fx", o / t) }')" \
      "$(of "$name" "$peer" peak_memory_gib | median)" "$(last_loss "$name" "$peer" | median)"
  done
  echo
done
echo "ceiling afterwards: $(ceiling)"
echo "host ms: what the host takes to ask for a step, which must be less than the step; spread: of our runs among themselves."
echo "ratio: our real tokens a second over theirs; % ceil: of the product in the first line, counting the work that the loss needs; -: no figure."
echo "loss: the last one, of other random weights and words and after another number of steps on each side; 0 where there is none."
[[ -z $failed ]]
