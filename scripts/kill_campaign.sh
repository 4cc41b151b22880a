#!/usr/bin/env bash
# Disturbs `prepare corpus`, `pretrain` (also with --save-model-only), `finetune` and `predict --output`, COUNT times. Of ten,
# eight are killed by SIGKILL at a random moment, one inside a call with which a file is changed (a write that puts down half of its bytes, say),
# and in place of one the disk is full or a call fails with EIO. Each time: nothing that has its own name is torn, no checkpoint
# that was saved is lost, what ends because of the disk says so in one line and with code 5, and the same command then comes to
# the bits of one that was not disturbed; a third of them are killed again while they go on. Half of the corpora are stopped by
# SIGTERM first, so that there is something to go on with. Prints a table; what was wrong stays in the directory that it names.
# usage: [JOBS=n] scripts/kill_campaign.sh SEED COUNT [BUILD_DIRECTORY]      JOBS: trials at a time, by default one a core
set -uo pipefail
[ $# -ge 2 ] || { sed -n '2,8s/^# //p' "$0" >&2; exit 2; }
cd "$(dirname "$0")/.." || exit 1
seed=$1 count=$2 build=$(realpath "${3:-build}") jobs=${JOBS:-$(nproc)}
bin=$build/bin
for program in prepare pretrain finetune predict; do
  [ -x "$bin/$program" ] || { echo "kill_campaign.sh: $bin/$program: expected a program, got none; hint: cmake --build $build" >&2; exit 2; }
done
work=$(mktemp -d) keep=
trap 'kill $(jobs -p) 2>/dev/null; [ -n "$keep" ] || rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
"${CXX:-c++}" -std=c++20 -O1 -fPIC -shared tests/kills/failing_disk.cpp -o "$work/failing_disk.so" || exit 1
cd "$work" || exit 1

make_inputs() {
  { printf '[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n'; for c in {a..z}; do printf '%s\n##%s\n' "$c" "$c"; done; } >vocab.txt
  echo '{"vocab_size": 57, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32,
         "max_position_embeddings": 32, "type_vocab_size": 2}' >config.json
  for file in {10..57}; do
    awk -v f="$file" 'BEGIN { for (d = 0; d < 12; ++d) { for (s = 0; s < 8; ++s) { for (w = 0; w <= (d * 7 + s * 5 + f) % 9; ++w)
           printf "%c%s", 97 + (d + s + w + f) % 26, w % 3 == 2 ? "" : " "; print "" } print "" } }' >"text$file.txt"
  done
  awk 'BEGIN { print "sentence\tlabel"; for (i = 0; i < 64; ++i) { for (w = 0; w < 6; ++w) printf "%c ", 97 + (i * 7 + w * i) % 26
         printf "\t%d\n", i % 2 } }' >table.tsv
  for i in {1..4000}; do echo "$((i % 7)) a b $i c d"; done >lines.txt
}
declare -A command=(
  [corpus]="prepare corpus --input $(printf "$work/text%s.txt " {10..57})--vocab-file $work/vocab.txt --threads 1 --shards 4"
  [pretrain]="pretrain --config $work/config.json --vocab-file $work/vocab.txt --input $work/whole.corpus --batch-size 8
    --max-seq-length 24 --log-every 1 --steps 24 --save-every 4 --keep 2 --threads 1"
  [finetune]="finetune --task custom --model $work/whole.pretrain --train $work/table.tsv --eval $work/table.tsv
    --predict $work/table.tsv --batch-size 8 --max-seq-length 16 --log-every 1 --steps 24 --save-every 4 --eval-every 5
    --keep 2 --threads 1"
  [alone]="pretrain --config $work/config.json --vocab-file $work/vocab.txt --input $work/whole.corpus --batch-size 8
    --max-seq-length 24 --log-every 1 --steps 6 --save-model-only --threads 1"
  [predict]="predict --model $work/whole.finetune --input $work/lines.txt --threads 1")
declare -A beside=(  # of a run that has ended, beside the files of every model
  [pretrain]="$(echo checkpoint-{20,24}/{model,optimizer}.safetensors)"
  [finetune]="$(echo checkpoint-{20,24}/{model,optimizer}.safetensors) predictions.tsv eval_results.json eval_results.txt"
  [alone]="ended.json")
programs=(corpus pretrain finetune alone predict)

run_of() {  # PROGRAM OUTPUT [FLAG…]: in the background, its words in OUTPUT.log
  local words
  read -ra words <<<"${command[$1]//$'\n'/ }"
  "$bin/${words[0]}" "${words[@]:1}" --output "$2" "${@:3}" >"$2.log" 2>&1 &
  pid=$!
}
trains() { [[ $1 != corpus && $1 != predict ]]; }  # PROGRAM: one that goes on with --resume
now() { now=${EPOCHREALTIME/./}; }  # microseconds
pause() { read -rt "$1" <&"$clock"; }  # without a process
comparable() { sed -E 's/"(examples_per_second|tokens_per_second|memory_bytes|seconds)": ?[^,}]*,?//g' "$1/metrics.jsonl"; }

# Whether what has its own name has the bits of the whole, and nothing of it is missing.
difference() {  # PROGRAM OUTPUT
  local file
  case $1 in
    corpus)
      diff -rq -x progress.json "$2" whole.corpus | tr '\n' ' ' ;;
    predict)
      cmp "$2" whole.predict 2>&1
      compgen -G "$2.tmp-*" ;;  # what killed ones left goes with the next one
    *)
      for file in model.safetensors config.json vocab.txt tokenizer.json tokenizer_config.json ${beside[$1]}; do
        cmp "$2/$file" "whole.$1/$file" 2>&1
      done
      [ "$(comparable "$2")" = "$(comparable "whole.$1")" ] || echo "metrics.jsonl differs"
      [ -s "$2/report.html" ] || echo "report.html is missing"
      compgen -G "$2/*tmp-*" ;;
  esac
}

newest_checkpoint() {  # OUTPUT: sets newest, 0 if there is none
  local name
  newest=0
  for name in "$1"/checkpoint-*; do
    name=${name##*/checkpoint-}
    [[ $name =~ ^[0-9]+$ ]] && [ "$name" -gt "$newest" ] && newest=$name
  done
}

# What a run that ended anyhow has left under names of its own.
torn() {  # PROGRAM OUTPUT
  local file
  case $1 in
    corpus) [ ! -e "$2" ] || difference corpus "$2" ;;
    predict) [ ! -e "$2" ] || cmp -s "$2" old || cmp "$2" whole.predict 2>&1 ;;
    *)
      for file in "$2"/{,checkpoint-*[0-9]/}{config.json,vocab.txt,tokenizer.json,tokenizer_config.json}; do
        [[ $file == *.tmp-* ]] || [ ! -e "$file" ] || cmp "$file" "whole.$1/${file##*/}" 2>&1
      done
      [ ! -e "$2/model.safetensors" ] || [ "$(stat -c %s "$2/model.safetensors")" = "$(stat -c %s "whole.$1/model.safetensors")" ] ||
        echo "model.safetensors has another size" ;;
  esac
}

# What was there before a run went on, and that it went on from there.
expect_to_go_on() {  # PROGRAM OUTPUT
  expected="" newest=0
  case $1 in
    corpus) [ ! -e "$2.partial/progress.json" ] || expected="went on after" ;;
    predict) ;;
    *) newest_checkpoint "$2"; [ "$newest" = 0 ] || expected="resumed from $2/checkpoint-$newest\$" ;;
  esac
}

wrong() {
  echo "trial $trial (seed $seed): $program, $kind at $at, in $work/$run: $*" >>"wrong.$job"
  bad=1
}

check_ended_by_disk() {  # CODE
  if [ "$1" = 0 ]; then return; fi  # a call that nothing depends on
  [ "$1" = 5 ] && [ "$(grep -c '^error: ' "$run.log")" = 1 ] || wrong "ended with code $1: $(tail -n 2 "$run.log")"
}

# One run that is disturbed. False if it ended before.
disturb() {  # PROGRAM OUTPUT KIND
  local code place whole=${length[$1]} fault=$3 flags=()
  trains "$1" && flags=(--resume)
  [ "$3" = moment ] || at=$(((RANDOM << 15 | RANDOM) % ${calls[$1]} + 1))
  case $3 in
    moment)
      place=$((whole * RANDOM / 32768))
      printf -v at '%d.%06d' $((place / 1000000)) $((place % 1000000))
      run_of "$1" "$2" "${flags[@]}"
      pause "$at"
      kill -KILL $pid 2>/dev/null ;;
    *)
      [ "$3" = call ] && fault="kill"
      LD_PRELOAD=$work/failing_disk.so FAULT=$fault FAULT_AT=$at run_of "$1" "$2" "${flags[@]}" ;;
  esac
  wait $pid 2>/dev/null
  code=$?
  case $3 in
    eio | full) check_ended_by_disk $code; return ;;  # no matter whether something depended on that call
  esac
  [ $code = 137 ] || [ $code = 0 ] || wrong "ended with code $code: $(tail -n 1 "$2.log")"
  # Most moments are to be before the end, however busy the machine is.
  if [ "$3" = moment ]; then length[$1]=$((code == 137 ? whole * 51 / 50 : whole * 9 / 10)); fi
  [ $code = 137 ]
}

finish() {
  local flags=() found
  trains "$program" && flags=(--resume)
  expect_to_go_on "$program" "$run"
  if [ "$program" != corpus ] || [ ! -e "$run" ]; then
    run_of "$program" "$run" "${flags[@]}"
    wait $pid || wrong "going on: $(tail -n 1 "$run.log")"
    [ -z "$expected" ] || grep -q "$expected" "$run.log" || wrong "expected '$expected', got $(grep -m 1 -E 'resumed|went on|beginning' "$run.log")"
    ! grep -q skipped "$run.log" || wrong "a torn checkpoint: $(grep skipped "$run.log")"
  fi
  found=$(difference "$program" "$run")
  [ -z "$found" ] || wrong "$found"
}

pick_kind() {
  case $((RANDOM % 20)) in
    0 | 1) kind=call ;;
    2) kind=eio ;;
    3) kind=full ;;
    *) kind=moment ;;
  esac
}

trial() {
  local found
  program=${programs[RANDOM % ${#programs[@]}]} run=$job.$program at=0 bad=0
  pick_kind
  rm -rf "$run" "$run".*
  [ "$program" = predict ] && [ $((RANDOM % 2)) = 0 ] && cp old "$run"
  if [ "$program" = corpus ] && [ $((RANDOM % 2)) = 0 ]; then
    run_of corpus "$run"
    pause "0.0$((RANDOM % 10))"
    kill -TERM $pid 2>/dev/null
    wait $pid
    [ ! -e "$run" ] || rm -rf "$run"  # it was done before
  fi
  expect_to_go_on "$program" "$run"
  disturb "$program" "$run" "$kind" || return 1
  local first=$kind second=
  found=$(torn "$program" "$run")
  [ -z "$found" ] || wrong "torn: $found"
  local before
  if [ $((RANDOM % 3)) = 0 ] && [[ $program != corpus || ! -e $run ]]; then
    expect_to_go_on "$program" "$run"
    before=$newest
    pick_kind
    if disturb "$program" "$run" "$kind"; then
      second=$kind
      found=$(torn "$program" "$run")
      [ -z "$found" ] || wrong "torn: $found"
      trains "$program" && newest_checkpoint "$run"
      [ "$newest" -ge "$before" ] || wrong "checkpoint-$before is lost, the newest is $newest"
    fi
  fi
  finish
  echo "$program $first 1 $bad" >>"done.$job"
  [ -z "$second" ] || echo "$program $second 1 0" >>"done.$job"
  [ $bad = 0 ] || { mkdir -p "kept.$job.$trial"; cp -r "$run" "$run".* "kept.$job.$trial/" 2>/dev/null; }
}

work_on() {  # JOB
  pid=
  trap '[ -z "$pid" ] || kill "$pid" 2>/dev/null' EXIT
  trap 'exit 1' TERM
  job=$1 RANDOM=$((seed * 101 + job)) trial=$1
  mkfifo "clock.$job"
  exec {clock}<>"clock.$job"
  newest=0 expected=""
  : >"done.$job"
  until [ "$(wc -l <"done.$job")" -ge $(((count + jobs - 1) / jobs)) ]; do
    until trial; do late=$((${late:-0} + 1)); done
    trial=$((trial + jobs))
  done
  echo "${late:-0}" >"late.$job"
}

make_inputs
echo "what stood there before" >old
declare -A length calls
now; begin=$now
for program in "${programs[@]}"; do
  now; start=$now
  run_of "$program" "whole.$program"
  wait $pid || { cat "whole.$program.log"; exit 1; }
  now; length[$program]=$((now - start))
  FAULT_COUNT=$work/calls LD_PRELOAD=$work/failing_disk.so run_of "$program" counted
  wait $pid || { cat counted.log; exit 1; }
  calls[$program]=$(cat calls)
  [ "${calls[$program]}" -gt 0 ] || { echo "kill_campaign.sh: $program: expected calls that change files, got none"; exit 1; }
  rm -rf counted*
done
pids=() died=0
for ((job = 0; job < jobs; ++job)); do work_on $job & pids+=($!); done
for pid in "${pids[@]}"; do wait "$pid" || died=$((died + 1)); done
now
cat done.* | awk -v seed="$seed" -v seconds=$(((now - begin) / 1000000)) -v late="$(cat late.* | awk '{ n += $1 } END { print n }')" '
  { n[$1, $2]++; total++; torn += $4 }
  END {
    print "| seed " seed "; " seconds " s | at a random moment | inside a call | EIO | disk full |\n|---|---|---|---|---|"
    named["corpus"] = "prepare corpus"; named["alone"] = "pretrain --save-model-only"
    count = split("corpus pretrain finetune alone predict", programs); split("moment call eio full", kinds)
    for (p = 1; p <= count; ++p) {
      line = "| `" (programs[p] in named ? named[programs[p]] : programs[p]) "` |"
      for (k = 1; k <= 4; ++k) line = line " " n[programs[p], kinds[k]] + 0 " |"
      print line
    }
    print total " disturbed, " late " more came too late; torn, lost, or of other bits: " torn + 0
  }'
keep=yes
if compgen -G 'wrong.*' >/dev/null; then cat wrong.*; exit 1; fi
disturbed=$(cat done.* | wc -l)
if [ $died -gt 0 ] || [ "$disturbed" -lt "$count" ]; then
  echo "kill_campaign.sh: expected $count to be disturbed, got $disturbed by $jobs jobs, of which $died ended early; hint: $work"
  exit 1
fi
keep=
