#!/usr/bin/env bash
# Kills a pre-training run with kill -9, resumes it, and compares its model with that of a run that was left alone.
# usage: docs/book/code/kill_a_run.sh FOLDER_OF_PROGRAMS
set -euo pipefail
bin=$(realpath "$1") work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat "$(dirname "$0")"/../*.md >"$work/text.txt"
cd "$work"

"$bin/prepare" vocab --input text.txt --output vocab.txt --size 1000 >log
flags=(--config tiny --vocab-file vocab.txt --input text.txt --max-seq-length 32 --steps 30 --save-every 5)
"$bin/pretrain" "${flags[@]}" --output alone >>log

"$bin/pretrain" "${flags[@]}" --output killed >>log &
until [ -d killed/checkpoint-10 ]; do sleep 0.05; done
kill -9 $!
wait $! || echo "killed, exit status $?"

"$bin/pretrain" --resume --output killed --threads 1 >>log
cmp alone/model.safetensors killed/model.safetensors && echo "the models are equal, byte for byte"
