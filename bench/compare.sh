#!/usr/bin/env bash
# One table: the same work here and in the peers (PyTorch, ONNX Runtime), interleaved in one run, beside the machine's peak.
# usage: bench/compare.sh PYTHON TORCH_STEP [ROUNDS] [THREADS] [MODEL_DIRECTORY MRPC_TRAIN_TSV]  (RESULTS=FILE)
#   PYTHON            an interpreter with torch, transformers and onnxruntime
#   TORCH_STEP        the script that times the same training step in torch
#   MODEL_DIRECTORY   a small pre-trained BERT (MiniLM) and MRPC's training file, for the rows on fine-tuning
# Each round runs both sides of every workload once, one after the other; the ratio is the median over the rounds. The
# spread is our longest time over our shortest: more than a few per cent says that something else was at work, be it in
# another virtual machine on the same processor, which the peak need not show.
#   RESULTS           a file that receives the table too, with the processor, the kernel set, the commit and the date
#   PRECISIONS        "f32", "bf16" or, by default, both: a processor without instructions for bf16 takes hours for both
#   PEER_FLAGS        what the peer's steps are told besides: --sdpa (its fused attention), --compile, or both
# What the peer does in bf16 is autocast. The peak is what the cores give right before and after our side: half
# a second's median of fused multiply-adds in f32. More than 100 % of it in f32 says that the measurement is wrong.
set -euo pipefail
cd "$(dirname "$0")/.."
usage="usage: bench/compare.sh PYTHON TORCH_STEP [ROUNDS] [THREADS] [MODEL_DIRECTORY MRPC_TRAIN_TSV]"
python=${1:?$usage} torch_step=${2:?$usage}
rounds=${3:-3} threads=${4:-2} model=${5:-} mrpc=${6:-} build=${BUILD:-build} precisions=${PRECISIONS:-f32 bf16}
cmake -S . -B "$build" >/dev/null
cmake --build "$build" --target bench finetune pretrain >/dev/null
bin=$build/bin log=$(mktemp) work=$(mktemp -d)
trap 'rm -rf "$log" "$work"' EXIT
onnx=$build/bench_base.onnx

# bench_peak fails if a moment was so busy that its two ways of measuring disagree: the next one may do.
fma() {
  local peak
  for _ in 1 2 3 4 5; do ! peak=$("$bin/bench_peak" "$threads") || { field fma_gflops_median <<<"$peak"; return; }; done
  echo "compare.sh: bench_peak: expected a quiet moment, got none in five; hint: is the machine busy?" >&2
  return 1
}
# Our side of a row: bench_step with these arguments, and the mean of the peaks around it.
run_ours() {
  local before after  # one statement each, as only the last one's failure counts
  before=$(fma)
  ours=$("$bin/bench_step" "$@")
  after=$(fma)
  peak=$(awk "BEGIN { print ($before + $after) / 2 }")
}
field() { sed -n "s/.*\"$1\": *\([0-9.]*\).*/\1/p"; }
peer_in() { echo $([[ $1 == bf16 ]] && echo --bf16) ${PEER_FLAGS:-}; }
# record WORKLOAD PEER_SECONDS OUR_SECONDS OUR_GFLOPS PEER_MB OUR_MB: one line of the log; 0 if there is no such figure
record() { echo "$*" >>"$log"; }

for _ in $(seq "$rounds"); do
  peak=$(fma)
  for config in tiny minilm base; do
    for precision in $precisions; do
      theirs=$("$python" "$torch_step" "${config/minilm/small}" "$threads" --steps 5 $(peer_in "$precision"))
      run_ours "$config" "$threads" train 0 8 --precision "$precision"
      record "train-$config-$precision" "$(field median_s <<<"$theirs")" "$(field median_s <<<"$ours")" \
        "$(field gflops <<<"$ours")" "$(field rss_MB <<<"$theirs")" "$(field rss_MB <<<"$ours")" "$peak"
    done
  done
  if [[ $precisions == *f32* ]]; then
    theirs=$("$python" bench/peers/infer_onnxruntime.py "$threads" "$onnx" 2>/dev/null | tail -1)
    run_ours base "$threads" infer 1 5
    record infer-base-f32-1 "$(field median_s <<<"$theirs")" "$(field median_s <<<"$ours")" "$(field gflops <<<"$ours")" 0 0 "$peak"
  fi
  for batch in 1 32; do
    [[ $precisions == *bf16* ]] || break
    theirs=$("$python" "$torch_step" base "$threads" --mode infer --batch "$batch" $(peer_in bf16))
    run_ours base "$threads" infer "$batch" 5 --precision bf16
    record "infer-base-bf16-$batch" "$(field median_s <<<"$theirs")" "$(field median_s <<<"$ours")" "$(field gflops <<<"$ours")" 0 0 "$peak"
  done
  if [[ -n $model ]]; then
    for padding in longest 128; do
      for precision in $precisions; do
        theirs=$("$python" bench/peers/finetune_torch.py "$model" "$mrpc" "$threads" "$padding" 12 "$precision" 2>/dev/null | field rows_per_second)
        "$bin/finetune" --task mrpc --model "$model" --train "$mrpc" --steps 14 --log-every 1 --no-shuffle --threads "$threads" \
          --precision "$precision" --output "$work/run" --overwrite >/dev/null
        ours=$(field examples_per_second <"$work/run/metrics.jsonl" | sort -n | sed -n 7p)
        record "mrpc-$padding-$precision" "$(awk "BEGIN { print 32 / $theirs }")" "$(awk "BEGIN { print 32 / $ours }")" 0 0 0 "$peak"
      done
    done
  fi
done

{
  printf '%s, commit %s, %s, %s of %s, FMA peak %s GFLOP/s on %d threads\n\n' "$(date -u +%F)" "$(git describe --always --dirty)" \
    "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), $(sed -n 's/^model\t*: /model /p' /proc/cpuinfo | head -1)" \
    "$("$bin/bench_step" tiny 1 infer 1 0.1 | sed -n 's/.*"device":"cpu, \([^,]*\).*/\1/p')" "$(nproc) cores" "$(fma)" "$threads"
  echo '| workload | peer s | ours s | spread | ratio | FMA peak | % of it | peer MB | ours MB |'
  echo '|---|---|---|---|---|---|---|---|---|'
  # shellcheck disable=SC2013  # a name of a workload has no blanks
  for workload in $(awk '!seen[$1]++ { print $1 }' "$log"); do
    awk -v w="$workload" '
      function median(a, n,   i, j, t) { for (i = 1; i < n; ++i) for (j = i + 1; j <= n; ++j) if (a[j] < a[i]) { t = a[i]; a[i] = a[j]; a[j] = t }; return a[int((n + 1) / 2)] }
      $1 == w { if (n == 0 || $3 < least) least = $3; if ($3 > most) most = $3; ++n; t[n] = $2; o[n] = $3; r[n] = $2 / $3; s[n] = 100 * $4 / $7; tm = $5; om = $6; p[n] = $7 }
      END { printf "| %s | %.3f | %.3f | %.2f | %.2f | %.1f | %.1f | %d | %d |\n", w, median(t, n), median(o, n), most / least, median(r, n), median(p, n), median(s, n), tm, om }' "$log"
  done
  printf '\n%s\n' "0: there is no such figure. infer-base-f32-1 is against ONNX Runtime, the rest against PyTorch, which in mrpc-* pads to 128 or to the longest of the batch."
} | tee ${RESULTS:+"$RESULTS"}
# bf16 may be multiplied faster than f32.
awk '$1 !~ /bf16/ && $4 > $7 { print "error: " $1 ": expected at most the peak of " $7 " GFLOP/s, found " $4 "; hint: is the machine busy?"; wrong = 1 } END { exit wrong }' "$log" >&2
