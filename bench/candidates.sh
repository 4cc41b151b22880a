#!/usr/bin/env bash
# Ranks a made-up file of candidates with a model of one layer of 16, and prints the time and the peak of the process.
# usage: bench/candidates.sh [LINES]     (default 7,000,000: a minute on two cores)
set -euo pipefail
cd "$(dirname "$0")/.."
lines=${1:-7000000} bin=$(realpath "${BUILD:-build}")/bin
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
echo '{"vocab_size": 13, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32, "max_position_embeddings": 64}' >config.json
printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' red green blue fish bird one the . >vocab.txt
printf 'the red fish .\none blue bird .\n\none green bird .\nthe blue fish .\n' >corpus.txt
printf 'the fish\tred fish\tblue bird\n' >triples.tsv
awk -v lines="$lines" 'BEGIN {
  split("red green blue fish bird one the", word, " ")
  for (i = 0; i < lines; ++i)
    printf "%d\t%07d\tthe %s\t%s %s %s .\n", 1000000 + i % 7000, i, word[1 + i % 7], word[1 + i % 6], word[1 + i % 5], word[1 + i % 3]
}' >candidates.tsv
short=(--max-seq-length 32 --max-query-length 8)
"$bin/pretrain" --config config.json --vocab-file vocab.txt --input corpus.txt --steps 1 --max-seq-length 32 --output model >/dev/null
"$bin/finetune" --task msmarco --model model --train triples.tsv --epochs 1 "${short[@]}" --output ranker >/dev/null
SECONDS=0
"$bin/finetune" --task msmarco --model ranker --predict candidates.tsv "${short[@]}" --micro-batch-size 256 --output out >/dev/null 2>&1 &
run=$! peak=0
while read -r _ kilobytes _ < <(grep VmHWM /proc/$run/status 2>/dev/null); do peak=$kilobytes; sleep 0.2; done
wait $run
echo "$lines candidates, $(stat -c %s candidates.tsv) bytes: $SECONDS s, peak $((peak / 1024)) MiB, $(wc -l <out/msmarco_predictions.tsv) ranked"
