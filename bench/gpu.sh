#!/usr/bin/env bash
# One table: training and inference on a card here and in PyTorch, interleaved, beside what the card's products and copies reach.
# usage: bench/gpu.sh [--device cuda:0] [--peer PYTHON TORCH_GPU] [--peers "tuned compiled stock"] [--workloads "NAME ..."]
#                     [--rounds 1] [--seconds 4] [--precision bf16] [--log FILE] [--small] [-- FLAGS_OF_BENCH_STEP]
#   --peer       an interpreter with torch and transformers, and the script that does the same work in them
#   --workloads  of base-128-b256 base-128-b32 base-512-b64 large-128-b256 wikipedia-512-b64 mrpc-b32 infer-1x128
#   --small      a tiny model and few short sequences, for trying this script out (--device emulated-cuda); its figures mean nothing
# Each round runs ours, a peer, ours, the next peer, …; figures are medians over the rounds, ratios those of real tokens a
# second. The JSON line of every run is kept in --log. BUILD names the build directory.
set -euo pipefail
cd "$(dirname "$0")/.."
device=cuda:0 python='' script='' peers='tuned compiled stock' rounds=1 seconds=4 precision=bf16 log='' small='' build=${BUILD:-build}
workloads='base-128-b256 base-128-b32 base-512-b64 large-128-b256 wikipedia-512-b64 mrpc-b32 infer-1x128'
more=(--measured-products)
while (($#)); do
  case $1 in
    --device) device=$2; shift 2 ;;
    --peer) python=$2 script=$3; shift 3 ;;
    --peers) peers=$2; shift 2 ;;
    --workloads) workloads=$2; shift 2 ;;
    --rounds) rounds=$2; shift 2 ;;
    --seconds) seconds=$2; shift 2 ;;
    --precision) precision=$2; shift 2 ;;
    --log) log=$2; shift 2 ;;
    --small) small=1; shift ;;
    --) shift; more+=("$@"); break ;;
    *) echo "gpu.sh: unknown argument $1; the first lines of bench/gpu.sh say what there is" >&2; exit 2 ;;
  esac
done
[[ -n $python ]] || peers=''
[[ -n $log ]] || { log=$(mktemp); trap 'rm -f "$log"' EXIT; }
: >"$log"
cmake --build "$build" --target bench >/dev/null
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
    --vocabulary 30528 --block "$block" "${ours_flags[@]}" "${more[@]}") || json='{"failed":1}'
  echo "$1 ours $json" >>"$log"
}
theirs() {
  local json steps=(--blocks 5 --steps 20)
  [[ -n $small ]] && steps=(--blocks 1 --steps 1)
  json=$("$python" "$script" "$task" "$2" --model "$model" --batch "$batch" --seq "$length" --precision "$precision" "${steps[@]}" 2>/dev/null | tail -1) || json=''
  echo "$1 $2 ${json:-{\"failed\":1\}}" >>"$log"
}

ceiling=$("$bin/bench_ceiling" --device "$device" ${small:+--size 64 --seconds 0})
echo "ceiling: $ceiling"
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

matmul=$(field matmul_tflops <<<"$ceiling")
# of NAME WHO FIELD: every value of a field in the log; median: of what comes in, - where nothing does
of() { grep -a "^$1 $2 " "$log" | field "$3" || true; }
median() { sort -g | awk '{ v[NR] = $1 } END { if (NR) print v[int((NR + 1) / 2)]; else print "-" }'; }
printf '%-18s %9s %8s %7s %10s %11s %8s %7s %7s' workload 'ours ms' 'host ms' spread 'seq/s' 'tokens/s' TFLOP/s '% ceil' GiB
for peer in $peers; do printf ' | %9s %7s %7s' "$peer ms" ratio GiB; done
echo
for name in $workloads; do
  ms=$(of "$name" ours ms | median) tokens=$(of "$name" ours real_tokens_per_s | median) gflops=$(of "$name" ours gflops | median)
  spread=$(of "$name" ours ms | sort -g | awk '{ v[NR] = $1 } END { if (NR) printf "%.1f%%", 100 * (v[NR] / v[1] - 1); else print "-" }')
  printf '%-18s %9s %8s %7s %10s %11s %8s %7s %7s' "$name" "$ms" "$(of "$name" ours host_ms | median)" "$spread" "$(of "$name" ours sequences_per_s | median)" "$tokens" \
    "$(awk -v g="$gflops" 'BEGIN { print g == "-" ? "-" : sprintf("%.4g", g / 1e3) }')" \
    "$(awk -v g="$gflops" -v m="$matmul" 'BEGIN { print g == "-" ? "-" : sprintf("%.1f", g / m / 10) }')" "$(of "$name" ours peak_memory_gib | median)"
  for peer in $peers; do
    their_tokens=$(of "$name" "$peer" real_tokens_per_s | median)
    printf ' | %9s %7s %7s' "$(of "$name" "$peer" ms | median)" \
      "$(awk -v o="$tokens" -v t="$their_tokens" 'BEGIN { print o == "-" || t == "-" ? "-" : sprintf("%.2fx", o / t) }')" \
      "$(of "$name" "$peer" peak_memory_gib | median)"
  done
  echo
done
echo "host ms: what the host takes to ask for a step, which must be less than the step; spread: of our runs among themselves."
echo "ratio: our real tokens a second over theirs; % ceil: of the product in the line above, counting the work that the loss needs; -: no figure."
