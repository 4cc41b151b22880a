#!/usr/bin/env bash
# What fine-tuning real weights reaches on word labels, answers, ranking and choices, beside PyTorch with the same settings: a line of
# figures for each task, side and seed. With SPEED=1 also examples a second: ours, PyTorch padded to the longest of the
# batch, and PyTorch padded to 384.
# usage: bench/tasks.sh MODEL DATA [TASKS [SEEDS]]
#   MODEL   all-MiniLM-L6-v2, a Hugging Face directory          TASKS  of "wnut uner squad squad2 msmarco choices"
#   DATA    a directory with ner, squad/small, ranking, corpus  SEEDS  by default "1 2 3"
# PYTHON is a python3 with torch and transformers; without it only our side runs. Two cores take hours for everything, so
# SIDES ("ours", "theirs", by default both) can spread it. Both sides in AVX2:
# BERTRAND_CPU_KERNELS=x86-64-v3 ATEN_CPU_CAPABILITY=avx2 ONEDNN_MAX_CPU_ISA=AVX2 bench/tasks.sh …
set -euo pipefail
cd "$(dirname "$0")/.."
usage='usage: bench/tasks.sh MODEL DATA [TASKS [SEEDS]]'
model=${1:?$usage} data=${2:?$usage} tasks=${3:-wnut uner squad squad2 msmarco choices} seeds=${4:-1 2 3}
build=${BUILD:-build} threads=${THREADS:-2} python=${PYTHON:-}
cmake -S . -B "$build" >/dev/null
cmake --build "$build" --target bertrand_backends finetune evaluate >/dev/null
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

declare -A task=([wnut]=ner [uner]=ner [squad]=squad [squad2]=squad2 [msmarco]=msmarco [choices]=custom)
declare -A epochs=([wnut]=3 [uner]=3 [squad]=2 [squad2]=2 [msmarco]=1 [choices]=3)
declare -A train=([wnut]=$data/ner/wnut17/train.conll [uner]=$work/uner.train [squad]=$data/squad/small/train-v1.1.json
                  [squad2]=$data/squad/small/train-v2.json [msmarco]=$data/ranking/triples.train.tsv
                  [choices]=$work/choices.train.jsonl)
declare -A held_out=([wnut]=$data/ner/wnut17/dev.conll [uner]=$work/uner.dev [squad]=$data/squad/small/dev-v1.1.json
                     [squad2]=$data/squad/small/dev-v2.json [msmarco]=$data/ranking/top10.dev.tsv
                     [choices]=$work/choices.dev.jsonl)
awk -v most=4000 -f bench/uner_words.awk "$data/ner/uner_ewt/en_ewt-ud-train.iob2" >"$work/uner.train"
awk -v most=100000 -f bench/uner_words.awk "$data/ner/uner_ewt/en_ewt-ud-dev.iob2" >"$work/uner.dev"
next_sentences() { awk -v most="$1" -v skip="$2" -f bench/continuations.awk <(xz -dc "$data/corpus/enwiki/enwiki_train.txt.xz"); }
next_sentences 3000 0 >"$work/choices.train.jsonl"
next_sentences 1000 3000 >"$work/choices.dev.jsonl"
declare -A columns=([choices]='--choice-columns choices')

score() {  # NAME FILE: the figures of what was predicted, by the same scorer for both sides
  case $1 in
    wnut|uner) "$build/bin/evaluate" tokens "$2" | grep -E '^(accuracy|f1) ' ;;
    squad|squad2) "$build/bin/evaluate" "$1" --data "${held_out[$1]}" --predictions "$2" | grep -E '^(exact|exact_match|f1) ' ;;
    msmarco) "$build/bin/evaluate" ranking --qrels "$data/ranking/qrels.dev.tsv" --run "$2" 2>/dev/null | grep -E '^(map|mrr_at_10) ' ;;
    choices) "$build/bin/evaluate" classes --choice-columns choices --data "${held_out[$1]}" --predictions "$2" |
      grep -E '^accuracy ' ;;
  esac | tr '\n' ' '
}
ours() {  # NAME SEED
  local extra=()
  [ "$1" = msmarco ] && extra=(--qrels "$data/ranking/qrels.dev.tsv")
  "$build/bin/finetune" --task "${task[$1]}" --model "$model" --train "${train[$1]}" --eval "${held_out[$1]}" ${columns[$1]:-} "${extra[@]}" \
    --predict "${held_out[$1]}" --epochs "${epochs[$1]}" --eval-every 1000000 --seed "$2" --threads "$threads" \
    --output "$work/run" --overwrite >"$work/log" 2>&1 || { cat "$work/log" >&2; return 1; }
  case $1 in
    wnut|uner) awk -F'\t' 'NR > 1 {if ($1 != s) print ""; s = $1; print $2 "\t" $5 "\t" $3}' "$work/run/predictions.tsv" >"$work/out" ;;
    squad|squad2) cp "$work/run/predictions.json" "$work/out" ;;
    msmarco) cp "$work/run/msmarco_predictions.tsv" "$work/out" ;;
    choices) cp "$work/run/predictions.tsv" "$work/out" ;;
  esac
  echo "$1, ours, seed $2: $(score "$1" "$work/out")"
}
theirs() {  # NAME SEED
  "$python" bench/peers/tasks_torch.py "${task[$1]}" "$model" "${train[$1]}" "${held_out[$1]}" "$work/out" "$2" \
    "${epochs[$1]}" "$threads" grouped >"$work/log" 2>&1 || { tail -3 "$work/log" >&2; return 1; }
  echo "$1, PyTorch, seed $2: $(score "$1" "$work/out")"
}
speed() {  # NAME: pairs in turn, the median of three
  local side rates
  for side in ours longest 384; do : >"$work/rates.$side"; done
  for _ in 1 2 3; do
    "$build/bin/finetune" --task "${task[$1]}" --model "$model" --train "${train[$1]}" ${columns[$1]:-} --steps "${STEPS:-12}" --log-every 1 \
      --threads "$threads" --output "$work/speed" --overwrite >/dev/null 2>&1
    tail -n +3 "$work/speed/metrics.jsonl" | grep -o '"examples_per_second": *[0-9.e+]*' | grep -o '[0-9.e+]*$' | sort -g |
      awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}' >>"$work/rates.ours"
    for side in longest 384; do
      "$python" bench/peers/tasks_torch.py "${task[$1]}" "$model" "${train[$1]}" "${held_out[$1]}" "$work/out" 1 1 "$threads" \
        "$side" "${STEPS:-12}" 2>/dev/null | tail -1 | grep -o '"examples_per_second": *[0-9.]*' | grep -o '[0-9.]*$' >>"$work/rates.$side"
    done
  done
  for side in ours longest 384; do
    rates="${rates:-} $side $(sort -g "$work/rates.$side" | sed -n 2p)"
  done
  echo "$1, examples a second:$rates"
}

for name in $tasks; do
  if [ -n "${SPEED:-}" ]; then speed "$name"; continue; fi
  for seed in $seeds; do
    for side in ${SIDES:-ours ${python:+theirs}}; do "$side" "$name" "$seed"; done
  done
done
