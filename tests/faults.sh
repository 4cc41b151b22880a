#!/usr/bin/env bash
# Disturbs runs of several processes at random. One process is killed or stopped at any time, is killed while a checkpoint is
# written or while the run begins, or is killed or stopped on one of two hosts that do not see each other's processes. Or the
# cable between the hosts is cut, or, while a checkpoint is written, the way from the host that writes it to the other.
# Every other process must exit with code 8 and one line within the timeout and five seconds, and a checkpoint that the line
# names must be there. Of a stopped process the others must name that one alone. SIGTERM to one process must save and end
# all with 75. No process may be left, and the run, resumed with any number of replicas, must end with the bits of one that
# was not disturbed.
# Exits with 77 if it is right, but the machine does not permit some of that.
# usage: [KINDS="kill stop save term early cut cut-save host-kill host-stop"] [RATE=16mbit] tests/faults.sh BIN_DIRECTORY [TRIALS] [SEED]
#   KINDS  of faults; by default all that the machine permits       RATE  of the cable, by default as fast as the machine
set -uo pipefail
. "$(dirname "$0")/../scripts/two_hosts.sh"
bin=$(realpath "$1") trials=${2:-6} seed=${3:-1}
[ -e "$bin/libbertrand_mpi.so" ] && command -v mpirun >/dev/null || { echo "SKIPPED: there is no MPI"; exit 77; }
timeout=2 steps=200
work=$(mktemp -d)
trap 'remove_hosts; rm -rf "$work"' EXIT
cd "$work" || exit 1
RANDOM=$seed

make_task() {
  { printf '[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n'; for c in {a..z}; do printf '%s\n##%s\n' "$c" "$c"; done; } >vocab.txt
  # 200,000 parameters: more than the network takes at once, so that faults find messages under way.
  echo '{"vocab_size": 57, "hidden_size": 96, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 256,
         "max_position_embeddings": 32, "type_vocab_size": 2}' >config.json
  awk 'BEGIN { for (d = 0; d < 12; ++d) { for (s = 0; s < 8; ++s) { for (w = 0; w <= (d * 7 + s * 5) % 9; ++w)
         printf "%c%s", 97 + (d + s + w) % 26, w % 3 == 2 ? "" : " "; print "" } print "" } }' >text.txt
}
flags=(--config config.json --vocab-file vocab.txt --input text.txt --batch-size 10 --micro-batch-size 1 --max-seq-length 24
       --log-every 1 --learning-rate 0.003 --steps "$steps" --save-every 5 --keep 1 --threads 1 --collective-timeout "$timeout")

# What mpirun starts for each process: it keeps the number, the code and the last words, and itself ends well.
write_rank_script() {  # RUN REPLICAS
  cat >"$1.sh" <<END
cd "$work"
"$bin/pretrain" ${flags[*]} --output "$work/$1" --replicas $2 >"$1.\$OMPI_COMM_WORLD_RANK.out" 2>"$1.\$OMPI_COMM_WORLD_RANK.error" &
echo \$! >"$1.\$OMPI_COMM_WORLD_RANK.pid"
wait \$!
echo \$? >"$1.\$OMPI_COMM_WORLD_RANK.code"
END
}

now() { date +%s%N; }
seconds_since() { awk -v a="$1" -v b="$(now)" 'BEGIN { printf "%.2f", (b - a) / 1e9 }'; }
wrong=0
wrong() { echo "trial $trial ($what): $*"; wrong=$((wrong + 1)); }
comparable() { sed -E 's/"(examples_per_second|tokens_per_second|memory_bytes|seconds)": ?[^,}]*,?//g' "$1/metrics.jsonl"; }

# The process that is to suffer: those of the second host have other numbers there than here.
victim_of() {  # RUN RANK
  local pid
  [[ $kind == host-* ]] || { cat "$1.$2.pid"; return; }
  for pid in $(ip netns pids "${hosts[$2]}"); do [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = pretrain ] && echo "$pid"; done
}

check_ended() {  # RUN CODE PATTERN RANK…
  local run=$1 code=$2 pattern=$3 rank; shift 3
  for rank in "$@"; do
    [ "$(cat "$run.$rank.code" 2>/dev/null)" = "$code" ] ||
      wrong "process $rank ended with $(cat "$run.$rank.code" 2>/dev/null), expected $code; it said: $(cat "$run.$rank.error")"
    [ "$code" != 75 ] || [ "$rank" = 0 ] || continue  # the first process says for all that they stopped
    # Open MPI says so itself, behind [host:pid], where it was reading from a process that died.
    [ "$(grep -vc '^\[' "$run.$rank.error")" = 1 ] && grep -q "$pattern" "$run.$rank.error" ||
      wrong "process $rank said: $(cat "$run.$rank.error")"
  done
}

check_blamed() {  # RUN RANK VICTIM: the one that was stopped is named, and no other is said to have stayed away
  local blamed
  blamed=$(grep -o '[^:]* did not come' "$1.$2.error" | grep -o 'process [0-9]*' | sort -u)
  [ "${blamed:-process $3}" = "process $3" ] && grep -q "process $3 " "$1.$2.error" ||
    wrong "process $2 blamed ${blamed:-nobody}, expected process $3: $(cat "$1.$2.error")"
}

check_named_checkpoint() {  # RUN RANK
  local named
  named=$(sed -n 's/.*; last checkpoint: //p' "$1.$2.error")
  [ -z "$named" ] || [ "$named" = none ] || [ -e "$named/MANIFEST.json" ] || wrong "process $2 named $named, which is not there"
}

check_resumed() {  # RUN
  local file replicas=$((RANDOM % 3 + 1))
  "$bin/pretrain" "${flags[@]}" --output "$1" --resume --replicas "$replicas" >"$1.log" 2>&1 || wrong "resuming: $(tail -n 1 "$1.log")"
  grep -q skipped "$1.log" && wrong "a torn checkpoint: $(grep skipped "$1.log")"
  for file in model.safetensors checkpoint-$steps/model.safetensors checkpoint-$steps/optimizer.safetensors; do
    cmp -s "$1/$file" "whole/$file" || wrong "$file differs after resuming with $replicas replicas"
  done
  [ "$(comparable "$1")" = "$(comparable whole)" ] || wrong "metrics differ"
}

declare -A count=([late]=0)
slowest=0
start() {  # RUN PROCESSES REPLICAS VICTIM
  write_rank_script "$1" "$3"
  if [[ $kind == cut* || $kind == host-* ]]; then timeout -k 5 90 "${over_cable[@]}" -n "$2" sh "$work/$1.sh"
  else timeout -k 5 90 "${mpirun[@]}" -n "$2" sh "$work/$1.sh"
  fi >"$1.mpirun" 2>&1 &
  launcher=$!
  until [ -s "$1/metrics.jsonl" ] || [ "$kind" = early -a -s "$1.$4.pid" ] || ! kill -0 $launcher 2>/dev/null; do sleep 0.01; done
}

disturb() {  # KIND: one trial; false where it came too late
  kind=$1
  local processes=$((RANDOM % 2 + 2)) replicas=$((RANDOM % 2 + 1)) run=run$trial rank begin survivors=() seconds pid
  [[ $kind == host-* ]] && processes=2
  local victim=$((RANDOM % processes)) delay
  [ "$kind" = save ] && victim=0  # the one that writes
  delay=$(awk -v r=$RANDOM -v whole="$whole" 'BEGIN { printf "%.3f", r / 32768 * whole }')
  what="$kind process $victim of $processes with $replicas replicas, $delay s after the first step"
  [ "$kind" = early ] && delay=$(awk -v d="$delay" -v whole="$whole" 'BEGIN { printf "%.3f", d / whole / 2 }')
  start "$run" "$processes" "$replicas" "$victim"
  sleep "$delay"
  for ((rank = 0; rank < processes; ++rank)); do
    [ -e "$run.$rank.code" ] && { count[late]=$((count[late] + 1)); wait $launcher; rm -rf "$run" "$run".*; return 1; }
    [[ $kind == cut* || $kind == term || $rank != "$victim" ]] && survivors+=("$rank")
  done
  pid=$(victim_of "$run" $victim)
  if [[ $kind == *save ]]; then
    until compgen -G "$run/checkpoint-*.tmp-*" >/dev/null || [ -e "$run.0.code" ]; do :; done
  fi
  begin=$(now)
  case $kind in
    kill | early | save | host-kill) kill -KILL "$pid" ;;
    stop | host-stop) kill -STOP "$pid" ;;
    term) kill -TERM "$pid" ;;
    cut-save) tc -n "${hosts[0]}" qdisc replace dev eth0 root tbf rate 8bit burst 1 limit 1 ;;  # no packet fits
    cut) ip -n "${hosts[1]}" link set eth0 down ;;
  esac
  for rank in "${survivors[@]}"; do
    until [ -s "$run.$rank.code" ] || [ "$(($(now) - begin))" -gt 20000000000 ]; do sleep 0.01; done
  done
  seconds=$(seconds_since "$begin")
  [[ $kind == *stop ]] && kill -KILL "$pid"
  [ "$kind" = cut ] && ip -n "${hosts[1]}" link set eth0 up
  [ "$kind" = cut-save ] && throttle "${RATE:-}"
  # Every process has ended, or hangs; mpirun may have lost the news with the cable.
  until ! kill -0 $launcher 2>/dev/null || [ "$(($(now) - begin))" -gt 6000000000 ]; do sleep 0.01; done
  kill $launcher 2>/dev/null; wait $launcher
  # One that had made its last step when the fault came ends well; so does everybody then.
  if [ "$(cat "$run.${survivors[0]}.code")" = 0 ]; then count[late]=$((count[late] + 1)); rm -rf "$run" "$run".*; return 1; fi
  count[$kind]=$((${count[$kind]:-0} + 1))
  awk -v s="$seconds" -v t="$timeout" 'BEGIN { exit !(s <= t + 5) }' || wrong "the others took $seconds s"
  slowest=$(awk -v a="$slowest" -v b="$seconds" 'BEGIN { print (a > b ? a : b) }')
  if [ "$kind" = term ]; then check_ended "$run" 75 '^stopped after step .*: state saved' "${survivors[@]}"
  elif [ "$kind" = early ]; then
    for rank in "${survivors[@]}"; do  # Open MPI ends a process itself if another one dies while both start it
      [ "$(cat "$run.$rank.code" 2>/dev/null)" = 1 ] && grep -q 'An error occurred in MPI_Init' "$run.$rank.error" ||
        check_ended "$run" 8 '^error: ' "$rank"
    done
  else check_ended "$run" 8 '^error: \(step\|after the last step\).*last checkpoint: ' "${survivors[@]}"
  fi
  for rank in "${survivors[@]}"; do
    check_named_checkpoint "$run" "$rank"
    [[ $kind != *stop ]] || check_blamed "$run" "$rank" "$victim"
  done
  pgrep -f "$bin/pretrain.*--output $work/$run " >/dev/null && wrong "a process is left"
  check_resumed "$run"
  rm -rf "$run" "$run".*
}

make_task
mpirun+=(--enable-recovery)  # one that fails does not end the others
kinds=(kill stop save term early) left_out=
if make_hosts "$work" 2>/dev/null; then kinds+=(cut cut-save host-kill host-stop)
elif [[ "${KINDS:-}" =~ cut|host ]]; then echo "SKIPPED: network namespaces are not permitted here"; exit 77
else left_out="cut links and two hosts"; fi
[ -z "${RATE:-}" ] || throttle "$RATE"
[ -z "${KINDS:-}" ] || { read -ra kinds <<<"$KINDS"; left_out=; }
trial=0 what="the undisturbed run"
begin=$(now)
"$bin/pretrain" "${flags[@]}" --output whole >whole.log 2>&1 || { cat whole.log; exit 1; }
whole=$(seconds_since "$begin")
while [ "$trial" -lt "$trials" ]; do
  trial=$((trial + 1))
  until disturb "${kinds[RANDOM % ${#kinds[@]}]}"; do :; done
done
echo "$trials trials, seed $seed: $(for kind in "${kinds[@]}"; do echo -n "${count[$kind]:-0} $kind, "; done)${count[late]} more came after the last step;" \
  "slowest exit of the others $slowest s with a timeout of $timeout s; $wrong wrong"
[ "$wrong" = 0 ] || exit 1
[ -z "$left_out" ] || { echo "SKIPPED: $left_out: network namespaces are not permitted here"; exit 77; }
