#!/usr/bin/env bash
# What size costs, in two tables. Of corpora: how fast `prepare corpus` makes one, after how long `pretrain` has made its first
# step from it, and the memory. Of tables: the time and the memory of `finetune --train`, `finetune --predict` and `predict`.
# usage: bench/corpus.sh TEXT VOCAB [SIZES_MB…] [rows=ROWS]
#   TEXT      a sentence a line, a blank line between documents     VOCAB  vocab.txt of an uncased model
#   SIZES_MB  text of each corpus, by default 5 50 5000: the beginning of TEXT, or TEXT so often that it is about as much.
#             Corpora are made one after the other and removed: the largest one takes half of its size in TMPDIR.
#   ROWS      lines of the larger table, by default 1000000: those of TEXT, by repetition. The smaller one has a tenth. 0: no tables.
# "step 1 s" is from the start of the process to the line of step 1, the median of ROUNDS runs. MB is the peak of what is
# resident, by GNU time, else VmHWM, which is read every 50 ms; it is that of the last run. "as text" says whether the loss of
# step 1, all its digits, is that of the same text without `prepare corpus`; it is asked of the smallest size alone.
# Environment: ROUNDS (3), STEPS of the longer run (10), THREADS (all cores), BUILD (build).
set -euo pipefail
cd "$(dirname "$0")/.."
usage='usage: bench/corpus.sh TEXT VOCAB [SIZES_MB…] [rows=ROWS]'
text=${1:?$usage} vocab=${2:?$usage} rows=1000000 sizes=()
fail() { echo "corpus.sh: $1" >&2; exit 2; }
for file in "$text" "$vocab"; do [ -s "$file" ] || fail "expected a file that has text, got \"$file\""; done
for argument in "${@:3}"; do
  number=${argument#rows=}
  [[ $number =~ ^(0|[1-9][0-9]{0,8})$ && $argument != 0 ]] || fail "expected a size in MB or rows=ROWS, got \"$argument\""
  if [ "$number" = "$argument" ]; then sizes+=("$number"); else rows=$number; fi
done
[ ${#sizes[@]} -gt 0 ] || sizes=(5 50 5000)
build=${BUILD:-build} threads=${THREADS:-$(nproc)} rounds=${ROUNDS:-3} steps=${STEPS:-10}
cmake -S . -B "$build" >/dev/null
cmake --build "$build" --target bertrand_backends prepare pretrain finetune predict >/dev/null
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
gnu_time=$(type -P time || true)

# run PROGRAM ARGUMENT…: leaves its peak in kB in $work/peak. If it fails its last line is what is said.
run() {
  local program=$build/bin/$1 process kilobytes peak=0 code=0; shift
  if [ -n "$gnu_time" ]; then
    "$gnu_time" -f %M -o "$work/peak" "$program" "$@" 2>"$work/said" || code=$?
  else
    "$program" "$@" 2>"$work/said" &
    process=$!
    while read -r _ kilobytes _ < <(grep VmHWM /proc/$process/status 2>/dev/null); do peak=$kilobytes; sleep 0.05; done
    wait $process || code=$?
    echo "$peak" >"$work/peak"
  fi
  [ $code = 0 ] || { echo "corpus.sh: ${program##*/} ended with $code: $(tail -n 1 "$work/said")" >&2; return 1; }
}
peak_mb() { awk '{ printf "%.0f", $1 * 1.024 / 1000 }' "$work/peak"; }
calculate() { awk "BEGIN { printf \"%.$1f\", $2 }"; }  # DIGITS EXPRESSION
now() { date +%s%N; }
since() { calculate 2 "($(now) - $1) / 1e9"; }  # BEGIN: seconds

text_bytes=$(wc -c <"$text")
# find_inputs MB: `inputs` are files with about so much text, of input_mb
find_inputs() {
  local wanted=$(($1 * 1000000)) count bytes
  inputs=()
  if ((wanted < text_bytes)); then
    head -c "$wanted" "$text" | sed '$d' >"$work/beginning.txt"  # without the line that is cut
    inputs=("$work/beginning.txt") bytes=$(wc -c <"$work/beginning.txt")
  else
    count=$(((wanted + text_bytes / 2) / text_bytes)) bytes=$((count * text_bytes))
    while ((count-- > 0)); do inputs+=("$text"); done
  fi
  input_mb=$(calculate 1 "$bytes / 1e6")
}
# train OUTPUT STEPS INPUT…: prints the seconds to the line of step 1
train() {
  local begin; begin=$(now)
  run pretrain --config tiny --vocab-file "$vocab" --batch-size 32 --threads "$threads" --log-every 1 --log-format jsonl \
    --steps "$2" --output "$work/$1" --overwrite --input "${@:3}" |
    while IFS= read -r line; do [[ $line != '{"event":"step","step":1,'* ]] || since "$begin"; done
}
first_loss() { sed -n '1s/.*"loss":\([^,}]*\).*/\1/p' "$work/$1/metrics.jsonl"; }

corpus_row() { printf '%9s %13s %11s %9s %10s %12s  %-20s %s\n' "$@"; }
corpus_row 'text MB' 'prepare MB/s' 'prepare MB' 'step 1 s' '1 step MB' "$steps steps MB" 'loss of step 1' 'as text'
smallest=$(printf '%s\n' "${sizes[@]}" | sort -n | sed -n 1p)
for size in "${sizes[@]}"; do
  find_inputs "$size"
  begin=$(now)
  run prepare corpus --vocab-file "$vocab" --threads "$threads" --shards 8 --output "$work/corpus" --input "${inputs[@]}" >/dev/null
  speed=$(calculate 1 "$input_mb / ($(now) - $begin) * 1e9") prepare_mb=$(peak_mb)
  : >"$work/seconds"
  for _ in $(seq "$rounds"); do
    seconds=$(train run 1 "$work/corpus")
    echo "$seconds" >>"$work/seconds"
  done
  seconds=$(sort -g "$work/seconds" | awk '{ s[NR] = $1 } END { print s[int((NR + 1) / 2)] }')
  one_mb=$(peak_mb) loss=$(first_loss run) same=-
  train run "$steps" "$work/corpus" >/dev/null
  more_mb=$(peak_mb)
  if [ "$size" = "$smallest" ]; then
    train run 1 "${inputs[@]}" >/dev/null
    same=no
    [ "$loss" != "$(first_loss run)" ] || same=yes
  fi
  corpus_row "$input_mb" "$speed" "$prepare_mb" "$seconds" "$one_mb" "$more_mb" "$loss" "$same"
  rm -rf "$work/corpus"
done
[ "$rows" != 0 ] || exit 0

# make_table ROWS: lines of TEXT, each with a label, and the lines alone
make_table() {
  TEXT=$text LC_ALL=C awk -v rows="$1" -v texts="$work/texts.txt" 'BEGIN {
    print "sentence\tlabel"
    while (made < rows) {
      before = made
      while (made < rows && (getline line < ENVIRON["TEXT"]) > 0) {
        gsub(/[\t\r]/, " ", line)
        if (line !~ /[^ ]/) continue
        print line "\t" made++ % 2
        print line > texts
      }
      close(ENVIRON["TEXT"])
      if (made == before) exit 1
    }
  }' >"$work/table.tsv" || fail "expected lines that are not blank in \"$text\""
}
# figures PROGRAM ARGUMENT…: its seconds and its peak
figures() {
  local begin; begin=$(now)
  run "$@" --threads "$threads" >/dev/null || return 1
  echo "$(since "$begin") $(peak_mb)"
}
short=(--max-seq-length 32)
cat >"$work/layer.json" <<JSON
{"vocab_size": $(grep -c '' "$vocab"), "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32,
 "max_position_embeddings": 64}
JSON
find_inputs 1
train tiny 1 "${inputs[@]}" >/dev/null
run pretrain --config "$work/layer.json" --vocab-file "$vocab" --input "${inputs[@]}" --steps 1 "${short[@]}" \
  --output "$work/layer" >/dev/null
make_table 1000
run finetune --task sst2 --model "$work/layer" --train "$work/table.tsv" --steps 1 "${short[@]}" --output "$work/classifier" >/dev/null

table_row() { printf '%9s %9s %9s %9s %11s %11s %10s %10s\n' "$@"; }
table_row rows 'table MB' 'train s' 'train MB' 'finetune s' 'finetune MB' 'predict s' 'predict MB'
for count in $((rows / 10)) "$rows"; do
  [ "$count" != 0 ] || continue
  make_table "$count"
  trained=$(figures finetune --task custom --model "$work/tiny" --train "$work/table.tsv" --steps 3 --max-seq-length 64 \
    --output "$work/trained-$count")
  tuned=$(figures finetune --task sst2 --model "$work/classifier" --predict "$work/table.tsv" "${short[@]}" --micro-batch-size 256 \
    --output "$work/predicted-$count")
  predicted=$(figures predict --task classify --model "$work/classifier" --input "$work/texts.txt" --input-format text "${short[@]}" \
    --output "$work/answers.jsonl")
  # shellcheck disable=SC2086  # two words each
  table_row "$count" "$(calculate 1 "$(wc -c <"$work/table.tsv") / 1e6")" $trained $tuned $predicted
done
