#!/usr/bin/env bash
# Says if two builds write the same bytes: prepare, pretrain, finetune and extract run on the same inputs with both.
# usage: bench/same_outputs.sh [--texts] OLD_BIN NEW_BIN [DIRECTORY]
#   OLD_BIN, NEW_BIN  folders with the programs and their modules (build/bin)
#   DIRECTORY         keeps all outputs here, for a closer look (default: a temporary folder, removed at the end)
#   --texts           also shows the differences of --help and of the lines on the terminal; they do not count as failures
# CASES ("pretrain extract" …) in the environment names the only cases to run, by the beginnings of their names. The cases
# of extract need the model of case pretrain-text.
# Inputs are real ones from ../shared/data if it is there, and small made-up ones. A line for each case, then a summary; exit
# code 1 if any output differs. All files are compared byte by byte, but for these:
#   metrics.jsonl          without examples_per_second, tokens_per_second, memory_bytes and seconds
#   run_config.json        without command, version, device, started, ended and the build's hash, in any order, and without what builds after a17e75a added:
#                          directory, and the flags in `added` below; they may lack that of a prediction without training
#   resume.json            without these flags, evaluations_since_best and unlogged, and MANIFEST.json without its size and checksum and its own, and
#                          without tokenizer.json
#   eval_report.tsv        not at all: a17e75a had none
#   tokenizer.json         not at all: a17e75a had none
#   report.html            not at all: it says when and where it was made
#   eval_results.json      global_step as a whole number, which a17e75a wrote as 6.0
#   eval_rows.jsonl        without rows in its first line, which eaffabd and before did not write
#   events.out.tfevents.*  the names of the values only: the files hold times, and metrics.jsonl has the same values
set -euo pipefail
added='save-every-minutes|freeze|layer-decay|patience|keep-moments|class-weights|label-smoothing|max-query-length|layout'
added+='|label-all-pieces|doc-stride|n-best-size|max-answer-length|null-score-diff-threshold|no-next-sentence'
texts=
[ "${1:-}" != --texts ] || { texts=yes; shift; }
usage='usage: bench/same_outputs.sh [--texts] OLD_BIN NEW_BIN [DIRECTORY]'
old_bin=$(realpath "${1:?$usage}") new_bin=$(realpath "${2:?$usage}") work=${3:-}
data=$(realpath "$(dirname "$0")/..")/../shared/data
if [ -n "$work" ]; then
  mkdir -p "$work"
  work=$(realpath "$work")
  rm -rf "$work"/{inputs,old,new}
else
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
fi
mkdir -p "$work"/{inputs,old,new}

# Inputs: words from a generator, so that every machine has the same ones.
make_inputs() {
  cd "$work/inputs"
  awk 'function next_number(n) { state = (state * 16807) % 2147483647; return state % n }
    BEGIN {
      state = 20261122
      split("ka to ri mu shé lo ņa en tra vi ost qu", syllable, " ")
      for (w = 0; w < 400; ++w) { word[w] = ""; for (s = next_number(3); s >= 0; --s) word[w] = word[w] syllable[1 + next_number(12)] }
      for (line = 1; line <= 1500; ++line) {
        text = ""
        for (n = 4 + next_number(22); n > 0; --n) { v = next_number(400); text = text (text == "" ? "" : " ") word[int(v * v / 400)] }
        print text "." > "made_up.txt"
        if (line % 7 == 0) print "" > "made_up.txt"
      }
      for (row = 0; row < 120; ++row) {
        file = row < 90 ? "train" : "eval"
        a = word[next_number(400)] " " word[next_number(400)] " " word[next_number(40)]
        b = word[next_number(400)] ", " word[next_number(40)]
        if (row == 0 || row == 90) {
          print "text\tlabel" > (file "_class.tsv")
          print "id,first,second,label" > (file "_pair.csv")
          print "text\tlabel" > (file "_score.tsv")
          print "text\tlabel" > (file "_tags.tsv")
        }
        print a "\t" substr("redbluegold", 1 + 3 * next_number(3), 3) > (file "_class.tsv")
        print row ",\"" a " \"\"quoted\"\"\",\"" b "\"," (next_number(2) ? "same" : "other") > (file "_pair.csv")
        print a "\t" next_number(51) / 10 > (file "_score.tsv")
        print a "\t" (next_number(2) ? "one" : "") (next_number(2) ? ",two" : "") > (file "_tags.tsv")
      }
    }'
  sed -i 's/\t,/\t/' ./*_tags.tsv
  head -n 200 made_up.txt >heldout.txt
  head -n 25 made_up.txt | sed '/^$/d' >lines.txt
  echo 'ka to ||| ri mu vi' >>lines.txt
  cp made_up.txt text.txt
  [ ! -d "$data" ] || head -c 400000 "$data/corpus/enwiki/enwiki_train_5mb.txt" | iconv -f utf-8 -t utf-8 -c >text.txt
  cat made_up.txt >>text.txt
  "$old_bin/prepare" vocab --input text.txt --output vocab.txt --size 2000 >/dev/null 2>&1
  "$old_bin/prepare" records --vocab-file vocab.txt --input text.txt --output records-0.tfrecord records-1.tfrecord --dupe-factor 1 \
    --max-seq-length 64 --max-predictions-per-seq 10 >/dev/null 2>&1
  gzip -nk records-1.tfrecord
  cd - >/dev/null
}

# plain FILE…: the contents without what no two runs have in common
plain() {
  case ${1##*/} in
    metrics.jsonl) sed -E 's/,?"(examples_per_second|tokens_per_second|memory_bytes|seconds)":[^,}]*//g' "$1" ;;
    run_config.json) sed -E '/^  "command": \[/,/^  \]/d; /^  "(version|device|directory|started|ended)":/d; /^    "(build|'"$added"')":/d; s/,$//' "$1" | sort ;;
    resume.json) sed -E '/^  "unlogged": \{/,/^  \}/d; /^  "evaluations_since_best":/d; /^    "--('"$added"')":/d; s/,$//' "$1" ;;
    MANIFEST.json) sed -E '/"(resume|tokenizer).json": \{/,/\}/d; /^ "crc32c":/d' "$1" ;;
    eval_results.json) sed -E 's/("global_step": [0-9]+)\.0/\1/' "$1" ;;
    eval_rows.jsonl) sed -E '1s/"rows":[0-9]+,?//' "$1" ;;
    events.out.tfevents.*) cat "$@" | grep -aoE '(train|eval|perf)/[a-z_0-9]+' || true ;;
    *) cat "$1" ;;
  esac
}
# names FOLDER: its files. Names of event files hold time, host and process: all of a folder are one, events.out.tfevents.*
names() { (cd "$1" && find . -type f ! -name eval_report.tsv ! -name tokenizer.json ! -name report.html | sed 's/\(events.out.tfevents\.\).*/\1*/' | LC_ALL=C sort); }

# What differs between two folders, a line for each file
differences() {
  local old=$1 new=$2 file
  diff <(names "$old") <(names "$new") | sed -n '/^> .\/run_config.json$/d; s/^< /only old: /p; s/^> /only new: /p'
  while read -r file; do
    compgen -G "$new/$file" >/dev/null || continue
    # shellcheck disable=SC2086  # all event files of a folder
    cmp -s <(plain "$old/"$file) <(plain "$new/"$file) || echo "differs: $file"
  done < <(names "$old" | uniq)
}

same=0 failed=()
launcher=()  # what starts the programs, if anything does
chosen() {
  local start
  [ -n "${CASES:-}" ] || return 0
  for start in $CASES; do case $1 in "$start"*) return 0 ;; esac; done
  return 1
}
run_side() {  # SIDE BIN NAME PROGRAM ARGUMENT…
  local side=$1 bin=$2 name=$3 program=$4 code=0
  shift 4
  cd "$work/$side"
  mkdir -p texts "$name"
  "${launcher[@]}" "$bin/$program" "${@//@/$name}" <../inputs/text.txt >"texts/$name.out" 2>"texts/$name.err" || code=$?
  [ "$program" != prepare ] || cp "texts/$name.out" "$name/stdout"
  echo "$code" >"$name/exit_code"
  cd - >/dev/null
}
# check NAME PROGRAM ARGUMENT…: runs it with both builds, each in a folder of its own, and compares what they leave in folder
# NAME. @ in an argument stands for NAME. A case of the same name goes on in the same folder.
check() {
  local name=$1 found
  chosen "$name" || return 0
  run_side old "$old_bin" "$@"
  run_side new "$new_bin" "$@"
  found=$(differences "$work/old/$name" "$work/new/$name")
  # Two builds that fail alike say nothing.
  if [ -z "$found" ] && [ "$(cat "$work/new/$name/exit_code")" != 0 ]; then found="both end with $(cat "$work/new/$name/exit_code")"; fi
  if [ -z "$found" ]; then
    same=$((same + 1))
    printf 'same     %-28s %4d files, exit code %s\n' "$name" "$(names "$work/new/$name" | wc -l)" "$(cat "$work/new/$name/exit_code")"
  else
    failed+=("$name")
    printf 'DIFFERS  %-28s\n' "$name"
    printf '           %s\n' "${found//$'\n'/$'\n           '}"
    [ "$(cat "$work/new/$name/exit_code")" = 0 ] || tail -n 2 "$work/new/texts/$name.err" | sed 's/^/           new says: /'
  fi
}
# forget CASE CHECKPOINT: as if both runs had been killed before they wrote it
forget() { rm -rf "$work"/{old,new}/"$1/$2"; }

make_inputs
text=../inputs/text.txt vocab=../inputs/vocab.txt
records=(../inputs/records-0.tfrecord ../inputs/records-1.tfrecord)

check prepare-vocab prepare vocab --input $text --output @/vocab.txt --size 3000
check prepare-tokens prepare tokens --vocab-file $vocab $text
check prepare-tokens-cased prepare tokens --vocab-file $vocab --cased --with-special-tokens --threads 1
check prepare-records prepare records --vocab-file $vocab --input $text --output @/a.tfrecord @/b.tfrecord --dupe-factor 2
check prepare-records-whole prepare records --vocab-file $vocab --input $text --output @/a.tfrecord --dupe-factor 3 --whole-word-mask --seed 7
check prepare-dump prepare dump "${records[@]}"

train=(pretrain --config tiny --vocab-file "$vocab" --output @ --log-every 1 --learning-rate 1e-3 --max-seq-length 64)
small=(--batch-size 8 --micro-batch-size 3 --steps 6 --save-every 3)
check pretrain-text "${train[@]}" --input $text --eval-input ../inputs/heldout.txt "${small[@]}"
for precision in bf16 f16; do check pretrain-text-$precision "${train[@]}" --input $text "${small[@]}" --precision $precision; done
check pretrain-text-defaults pretrain --config tiny --vocab-file $vocab --output @ --input $text --steps 2
check pretrain-whole-words "${train[@]}" --input $text "${small[@]}" --whole-word-mask --no-shuffle --short-seq-prob 0.5
check pretrain-epochs "${train[@]}" --input ../inputs/heldout.txt --epochs 2 --batch-size 16 --micro-batch-size 16 --eval-input ../inputs/heldout.txt
for precision in f32 bf16 f16; do check pretrain-records-$precision "${train[@]}" --input "${records[@]}" "${small[@]}" --precision $precision; done
check pretrain-records-gzip "${train[@]}" --input "${records[0]}" ../inputs/records-1.tfrecord.gz "${small[@]}" --clip-norm 0.1
for optimizer in adamw lamb lamb-decayed; do
  check pretrain-$optimizer "${train[@]}" --input "${records[@]}" "${small[@]}" --optimizer $optimizer --schedule polynomial --warmup-steps 2
done
check pretrain-lamb-f16 "${train[@]}" --input "${records[@]}" "${small[@]}" --optimizer lamb --precision f16
for precision in f32 bf16; do
  check pretrain-replicas-$precision "${train[@]}" --input $text "${small[@]}" --replicas 2 --precision $precision
done
if command -v mpirun >/dev/null && [ -e "$old_bin/libbertrand_mpi.so" ] && [ -e "$new_bin/libbertrand_mpi.so" ]; then
  launcher=(mpirun --allow-run-as-root --oversubscribe --bind-to none -n 2)
  check pretrain-processes "${train[@]}" --input $text "${small[@]}" --threads 1
  launcher=()
fi
check pretrain-killed "${train[@]}" --input $text "${small[@]}"
forget pretrain-killed checkpoint-6
check pretrain-killed "${train[@]}" --input $text "${small[@]}" --resume
check pretrain-killed-f16 "${train[@]}" --input "${records[@]}" "${small[@]}" --precision f16
forget pretrain-killed-f16 checkpoint-6
check pretrain-killed-f16 "${train[@]}" --input "${records[@]}" "${small[@]}" --precision f16 --replicas 2 --resume
check pretrain-init pretrain --init pretrain-text --output @ --input $text "${small[@]}" --max-seq-length 32

tune=(finetune --task custom --model pretrain-text --output @ --log-every 1 --max-seq-length 48 --epochs 2 --batch-size 16 --micro-batch-size 8
      --learning-rate 1e-3)
files() { printf -- '--train ../inputs/train_%s --eval ../inputs/eval_%s --predict ../inputs/eval_%s' "$1" "$1" "$1"; }
# shellcheck disable=SC2046  # names of files without blanks
{
  check finetune-class "${tune[@]}" $(files class.tsv)
  check finetune-pair "${tune[@]}" $(files pair.csv) --text-column first --text-pair-column second --id-column id
  check finetune-score "${tune[@]}" $(files score.tsv) --kind regression
  check finetune-tags "${tune[@]}" $(files tags.tsv) --kind multi-label --eval-every 3
  for precision in bf16 f16; do check finetune-class-$precision "${tune[@]}" $(files class.tsv) --precision $precision; done
  check finetune-replicas "${tune[@]}" $(files class.tsv) --replicas 2
  check finetune-lamb "${tune[@]}" $(files pair.csv) --text-column 1 --text-pair-column 2 --label-column 3 --optimizer lamb --no-shuffle
  check finetune-killed "${tune[@]}" $(files class.tsv) --save-every 5
  forget finetune-killed checkpoint-12
  check finetune-killed "${tune[@]}" $(files class.tsv) --save-every 5 --resume
  check finetune-defaults finetune --task custom --model pretrain-text --output @ $(files class.tsv) --max-seq-length 48
}
check predict-class finetune --task custom --model finetune-class --predict ../inputs/eval_class.tsv --output @ --max-seq-length 128
if [ -d "$data/glue" ]; then
  glue=(--log-every 1 --max-seq-length 64 --steps 6 --batch-size 16 --micro-batch-size 8 --model pretrain-text --output @)
  for task in cola:CoLA mrpc:MRPC stsb:STS-B sst2:SST-2 rte:RTE wnli:WNLI; do
    folder=$data/glue/${task#*:}
    head -n 80 "$folder/dev.tsv" >"$work/inputs/${task%:*}.tsv"
    check "finetune-${task%:*}" finetune --task "${task%:*}" "${glue[@]}" --train "$folder/train.tsv" --eval "../inputs/${task%:*}.tsv" \
      --predict "../inputs/${task%:*}.tsv"
  done
  check finetune-banking finetune --task custom --text-column text --label-column category "${glue[@]}" \
    --train "$data/intents/banking77/train.csv" --predict "$data/intents/banking77/train.csv"
fi

check extract extract --model pretrain-text --input ../inputs/lines.txt --output @/features.jsonl
check extract-pooled extract --model pretrain-text --input ../inputs/lines.txt --output @/features.jsonl --layers 0,1,-1 --pooled --batch-size 3

# What a terminal shows, without rates, times and the folders of the programs.
shown() { sed -E 's/ +[0-9.]+[kM]? (examples|tokens|rows|MB|kB|lines|words)\/s//g; s/[0-9.:]+ ?(ms|s|min|h)( left)?\b//g; s/ [0-9.]+ [kMG]?B( available|$)//g' "$@"; }
if [ -n "$texts" ]; then
  for command in prepare 'prepare tokens' 'prepare records' 'prepare dump' 'prepare vocab' pretrain finetune extract; do
    # shellcheck disable=SC2086  # program and subcommand
    diff -U0 --label "old $command --help" --label "new $command --help" <("$old_bin"/$command --help 2>&1) <("$new_bin"/$command --help 2>&1) || true
  done
  for file in "$work"/old/texts/*; do
    name=${file##*/}
    diff -U0 --label "old $name" --label "new $name" <(shown "$file") <(shown "$work/new/texts/$name") || true
  done
fi
echo "$same cases are the same, ${#failed[@]} differ${failed[*]:+: ${failed[*]}}"
[ ${#failed[@]} -eq 0 ]
