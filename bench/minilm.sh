#!/usr/bin/env bash
# What fine-tuning real weights reaches: MRPC, SST-2 (its first 8,000 rows, one epoch), STS-B and CoLA with finetune's
# defaults, evaluated on the dev files. A line of results for each task and seed; two cores take an hour and a half.
# usage: bench/minilm.sh MODEL GLUE [SEEDS]
#   MODEL  all-MiniLM-L6-v2, a Hugging Face directory       SEEDS  by default "1 2 3"
#   GLUE   a directory with MRPC, SST-2, STS-B and CoLA, in each train.tsv and dev.tsv
set -euo pipefail
cd "$(dirname "$0")/.."
usage='usage: bench/minilm.sh MODEL GLUE [SEEDS]'
model=${1:?$usage} glue=${2:?$usage} seeds=${3:-1 2 3} build=${BUILD:-build}
cmake -S . -B "$build" >/dev/null
cmake --build "$build" --target bertrand_backends finetune >/dev/null
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
head -n 8001 "$glue/SST-2/train.tsv" >"$work/sst2.tsv"  # and its header

tune() {  # TASK SEED TRAIN DEV [FLAG…]
  local task=$1 seed=$2 train=$3 dev=$4; shift 4
  "$build/bin/finetune" --task "$task" --model "$model" --train "$train" --eval "$dev" --seed "$seed" \
    --output "$work/run" --overwrite "$@" >"$work/log" 2>&1 || { cat "$work/log" >&2; return 1; }
  echo "$task, seed $seed: $(tr '\n' ' ' <"$work/run/eval_results.txt")"
}
for seed in $seeds; do
  tune mrpc "$seed" "$glue/MRPC/train.tsv" "$glue/MRPC/dev.tsv"
  tune sst2 "$seed" "$work/sst2.tsv" "$glue/SST-2/dev.tsv" --epochs 1
  tune stsb "$seed" "$glue/STS-B/train.tsv" "$glue/STS-B/dev.tsv"
  tune cola "$seed" "$glue/CoLA/train.tsv" "$glue/CoLA/dev.tsv"
done
