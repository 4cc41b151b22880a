#!/usr/bin/env bash
# One table: text and pre-training data here, in Hugging Face's tokenizers and in Google's script, on the same files.
# usage: bench/text.sh TEXT SMALL_TEXT VOCAB PYTHON GOOGLE_PYTHON GOOGLE_SCRIPT [ROUNDS]
#   TEXT           a sentence a line, a blank line between documents: Wikipedia, 48.6 MB
#   SMALL_TEXT     the first 5 MB of it, for Google's script
#   VOCAB          vocab.txt of bert-base-uncased
#   PYTHON         an interpreter that has tokenizers        GOOGLE_PYTHON  one that has tensorflow
#   GOOGLE_SCRIPT  create_pretraining_data.py of google-research/bert, tokenization.py beside it
# Each round runs both sides of every row, one right after the other; figures are medians over the rounds. Ours are whole
# processes: starting, reading, writing the ids as text. Hugging Face's are the calls alone, on lines that are in memory.
# The ratio of processor time stands beside that of the clock, because it is the steadier one on a machine in use.
set -euo pipefail
cd "$(dirname "$0")/.."
usage='usage: bench/text.sh TEXT SMALL_TEXT VOCAB PYTHON GOOGLE_PYTHON GOOGLE_SCRIPT [ROUNDS]'
text=${1:?$usage} small=${2:?$usage} vocab=${3:?$usage} python=${4:?$usage} google_python=${5:?$usage} google=${6:?$usage}
rounds=${7:-3} build=${BUILD:-build}
cmake -S . -B "$build" >/dev/null
cmake --build "$build" --target prepare >/dev/null
prepare=$build/bin/prepare
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The seconds by the clock and of processors that a command takes.
clock() {
  local TIMEFORMAT='%R %U %S' times
  times=$({ time "$@" >/dev/null 2>"$work/error"; } 2>&1) || { cat "$work/error" >&2; return 1; }
  awk '{ print $1, $2 + $3 }' <<<"$times"
}
peak_mb() { /usr/bin/time -f %M -o "$work/peak" "$@" >/dev/null 2>&1 && awk '{ print $1 * 1.024 / 1000 }' "$work/peak"; }

cat >"$work/tokens.py" <<'PYTHON'
import sys, time
from tokenizers import BertWordPieceTokenizer, Tokenizer
tokenizer = Tokenizer.from_str(BertWordPieceTokenizer(sys.argv[1], lowercase=True).to_str())
lines = open(sys.argv[2], encoding="utf-8").read().split("\n")
wall, cpu = time.perf_counter(), time.process_time()
for first in range(0, len(lines), 10000):
    tokenizer.encode_batch_fast(lines[first:first + 10000], add_special_tokens=False)  # without places in the text
print(time.perf_counter() - wall, time.process_time() - cpu)
PYTHON
cat >"$work/vocab.py" <<'PYTHON'
import sys, time
from tokenizers import BertWordPieceTokenizer
tokenizer = BertWordPieceTokenizer(lowercase=True)
wall, cpu = time.perf_counter(), time.process_time()
tokenizer.train([sys.argv[1]], vocab_size=30522, min_frequency=2, limit_alphabet=1000, show_progress=False)
print(time.perf_counter() - wall, time.process_time() - cpu)
PYTHON
# Google's script is of TensorFlow 1: its names are in compat.v1 today.  (A file named google.py would hide the package google.)
cat >"$work/peer_records.py" <<'PYTHON'
import os, runpy, sys
import tensorflow.compat.v1
sys.modules["tensorflow"] = tensorflow.compat.v1
sys.argv = sys.argv[1:]
sys.path.insert(0, os.path.dirname(sys.argv[0]))
runpy.run_path(sys.argv[0], run_name="__main__")
PYTHON

hugging_face() { RAYON_NUM_THREADS=$1 TOKENIZERS_PARALLELISM=true "$python" "${@:2}"; }
records() { "$prepare" records --vocab-file "$vocab" --output "$work/ours" --overwrite --threads 2 "$@"; }

for _ in $(seq "$rounds"); do
  for threads in 1 2; do
    peer=$(hugging_face $threads "$work/tokens.py" "$vocab" "$text")
    ours=$(clock "$prepare" tokens --vocab-file "$vocab" --threads $threads "$text")
    echo "tokens$threads $peer $ours" >>"$work/log"
  done
  peer=$(clock "$google_python" "$work/peer_records.py" "$google" --vocab_file="$vocab" --input_file="$small" \
    --output_file="$work/google" --dupe_factor=5)
  ours=$(clock records --input "$small" --dupe-factor 5)
  echo "records $peer $ours" >>"$work/log"
  peer=$(hugging_face 2 "$work/vocab.py" "$text")
  ours=$(clock "$prepare" vocab --overwrite --input "$text" --output "$work/vocab" --size 30522 --threads 2)
  echo "vocab $peer $ours" >>"$work/log"
done
one=$(peak_mb "$prepare" records --vocab-file "$vocab" --output "$work/ours" --overwrite --threads 2 --input "$text" --dupe-factor 1)
ten=$(peak_mb "$prepare" records --vocab-file "$vocab" --output "$work/ours" --overwrite --threads 2 --input "$text" --dupe-factor 10)

median='function median(a, n,   i, j, t) { for (i = 1; i < n; ++i) for (j = i + 1; j <= n; ++j) if (a[j] < a[i]) { t = a[i]; a[i] = a[j]; a[j] = t }; return a[int((n + 1) / 2)] }'
printf '%-44s %9s %9s %8s %8s   %s\n' workload 'peer s' 'ours s' ratio 'of CPU' goal
row() {
  awk -v key="$1" -v name="$2" -v goal="$3" "$median"'
    $1 == key { ++n; p[n] = $2; o[n] = $4; r[n] = $2 / $4; c[n] = $3 / $5 }
    END { printf "%-44s %9.2f %9.2f %7.1fx %7.1fx   %s\n", name, median(p, n), median(o, n), median(r, n), median(c, n), goal }' "$work/log"
}
row tokens1 'tokens, 1 thread, against tokenizers' '6x'
row tokens2 'tokens, 2 threads, against tokenizers' '6x'
awk "$median"'
  $1 == "tokens1" { one = $4 }
  $1 == "tokens2" { r[++n] = one / $4 }
  END { printf "%-44s %28.2fx %10s %s\n", "tokens, 2 threads against 1", median(r, n), "", "1.8x" }' "$work/log"
row records 'records, dupe 5, against Google'"'"'s script' '25x'
row vocab 'vocab 30522, against tokenizers'"'"' trainer' '1x'
printf '%-44s %16.0f MB %19s %s\n' 'records, peak memory, dupe 1' "$one" '' 'as dupe 10' 'records, peak memory, dupe 10' "$ten" '' '300 MB at most'
