#!/usr/bin/env bash
# Whether fine-tuning learns what PyTorch learns: from the same weights and head, in the order of the file and without
# dropout, the loss of each step of both, and the largest difference. Chance then has no part in it, so that minutes say
# what bench/tasks.sh says in hours.
# usage: PYTHON=… bench/same_losses.sh MODEL DATA [TASKS [STEPS]]
#   MODEL   all-MiniLM-L6-v2, a Hugging Face directory          TASKS  of "wnut uner squad squad2 msmarco cross choices"
#   DATA    a directory with ner, squad/small, ranking, corpus  STEPS  by default 20, with a rate that falls to 0 in them
# cross is msmarco with a model of one label, as cross-encoders are. PYTHON is a python3 with torch and transformers.
set -euo pipefail
cd "$(dirname "$0")/.."
usage='usage: PYTHON=… bench/same_losses.sh MODEL DATA [TASKS [STEPS]]'
model=${1:?$usage} data=${2:?$usage} tasks=${3:-wnut uner squad squad2 msmarco cross choices} steps=${4:-20}
build=${BUILD:-build} threads=${THREADS:-2} python=${PYTHON:?$usage}
cmake -S . -B "$build" >/dev/null
cmake --build "$build" --target bertrand_backends finetune >/dev/null
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
declare -A task=([wnut]=ner [uner]=ner [squad]=squad [squad2]=squad2 [msmarco]=msmarco [cross]=msmarco
                 [choices]=custom)
declare -A train=([wnut]=$data/ner/wnut17/train.conll [uner]=$work/uner.train [squad]=$data/squad/small/train-v1.1.json
                  [squad2]=$data/squad/small/train-v2.json [msmarco]=$data/ranking/triples.train.tsv
                  [cross]=$data/ranking/triples.train.tsv [choices]=$work/choices.jsonl)
awk -v most=4000 -f bench/uner_words.awk "$data/ner/uner_ewt/en_ewt-ud-train.iob2" >"$work/uner.train"
awk -v most=3000 -v skip=0 -f bench/continuations.awk <(xz -dc "$data/corpus/enwiki/enwiki_train.txt.xz") >"$work/choices.jsonl"

cp -r "$model" "$work/still"
sed -i -E 's/("(hidden|attention_probs)_dropout_prob": *)[0-9.]+/\10.0/' "$work/still/config.json"
cp -r "$work/still" "$work/cross"
sed -i '0,/{/s//{"id2label": {"0": "relevant"},/' "$work/cross/config.json"
for name in $tasks; do
  extra=()
  [ "$name" = choices ] && extra=(--choice-columns choices)
  ours() {  # MODEL OUTPUT and flags
    "$build/bin/finetune" --task "${task[$name]}" --model "$1" --train "${train[$name]}" --threads "$threads" --no-shuffle \
      --log-every 1 --output "$2" --overwrite "${extra[@]}" "${@:3}" >"$work/log" 2>&1 || { cat "$work/log" >&2; return 1; }
  }
  start=$work/still
  [ "$name" = cross ] && start=$work/cross
  ours "$start" "$work/head" --steps 1 --learning-rate 0  # draws the head, and leaves the rest as it is
  ours "$work/head" "$work/run" --steps "$steps"
  "$python" bench/peers/tasks_torch.py "${task[$name]}" "$work/head" "${train[$name]}" "${train[$name]}" none 1 1000 "$threads" grouped \
    "$steps" "$work/theirs" >"$work/log" 2>&1 || { tail -3 "$work/log" >&2; exit 1; }
  grep -o '"loss": *[0-9.e+-]*' "$work/run/metrics.jsonl" | grep -o '[0-9.e+-]*$' >"$work/ours"
  paste "$work/ours" "$work/theirs" | awk -v name="$name" '
    NF != 2 {print name ": step " NR " is missing on one side"; bad = 1; exit}
    {d = $1 - $2; sum += d; if (d < 0) d = -d; if (d > most) {most = d; at = NR}; first = NR == 1 ? $1 : first; last = $1}
    NR == 10 {early = most}
    NR % 10 == 0 {mean = sum < 0 ? -sum / 10 : sum / 10; if (mean > means) means = mean; sum = 0}
    END {if (!bad) printf "%s: %d steps, loss %.4f to %.4f, largest difference %.1e at step %d, %.1e in the first 10 steps, %.1e of means of 10\n",
                          name, NR, first, last, most, at, early, means}'
done
