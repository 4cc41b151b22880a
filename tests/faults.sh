#!/usr/bin/env bash
# Disturbs runs of several processes at random: kills one process, stops one, or cuts the cable between two hosts. Every
# other process must exit with code 8 and one line within the timeout and five seconds, nothing may be left running, and
# the run must end with the bits of an undisturbed one when it is resumed with any number of replicas.
# usage: tests/faults.sh BIN_DIRECTORY [TRIALS] [SEED]
set -uo pipefail
bin=$(realpath "$1") trials=${2:-6} seed=${3:-1}
[ -e "$bin/libbertrand_mpi.so" ] && command -v mpirun >/dev/null || { echo "SKIPPED: there is no MPI"; exit 0; }
timeout=2 steps=300
work=$(mktemp -d)
hosts=("bertrand-$$-a" "bertrand-$$-b")
cleanup() {
  for host in "${hosts[@]}"; do ip netns del "$host" 2>/dev/null; done
  rm -rf "$work"
}
trap cleanup EXIT
cd "$work" || exit 1
RANDOM=$seed

make_task() {
  { printf '[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n'; for c in {a..z}; do printf '%s\n##%s\n' "$c" "$c"; done; } >vocab.txt
  echo '{"vocab_size": 57, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32,
         "max_position_embeddings": 32, "type_vocab_size": 2}' >config.json
  awk 'BEGIN { for (d = 0; d < 12; ++d) { for (s = 0; s < 8; ++s) { for (w = 0; w <= (d * 7 + s * 5) % 9; ++w)
         printf "%c%s", 97 + (d + s + w) % 26, w % 3 == 2 ? "" : " "; print "" } print "" } }' >text.txt
}
flags=(--config config.json --vocab-file vocab.txt --input text.txt --batch-size 10 --micro-batch-size 2 --max-seq-length 24
       --log-every 1 --learning-rate 0.003 --steps "$steps" --save-every 5 --threads 1 --collective-timeout "$timeout")

# What mpirun starts for each process: it keeps the number, the code and the last words, and itself ends well.
write_rank_script() {  # RUN REPLICAS
  cat >"$1.sh" <<END
cd "$work"
"$bin/pretrain" ${flags[*]} --output "$1" --replicas $2 >"$1.\$OMPI_COMM_WORLD_RANK.out" 2>"$1.\$OMPI_COMM_WORLD_RANK.error" &
echo \$! >"$1.\$OMPI_COMM_WORLD_RANK.pid"
wait \$!
echo \$? >"$1.\$OMPI_COMM_WORLD_RANK.code"
END
}

make_hosts() {
  local host link
  ip netns add "${hosts[0]}" && ip netns add "${hosts[1]}" &&
    ip -n "${hosts[0]}" link add eth0 type veth peer name eth0 netns "${hosts[1]}" &&
    ip -n "${hosts[0]}" addr add 10.78.0.1/24 dev eth0 && ip -n "${hosts[1]}" addr add 10.78.0.2/24 dev eth0 || return 1
  for host in "${hosts[@]}"; do for link in lo eth0; do ip -n "$host" link set "$link" up || return 1; done; done
  printf 'shift\nexec ip netns exec %s unshare -u sh -c "hostname second; $*"\n' "${hosts[1]}" >agent.sh
}
mpirun=(mpirun --allow-run-as-root --oversubscribe --bind-to none --enable-recovery)
over_cable=(ip netns exec "${hosts[0]}" "${mpirun[@]}" --host 10.78.0.1,10.78.0.2 --mca plm_rsh_agent "sh $work/agent.sh"
            --mca btl tcp,self --mca btl_tcp_if_include 10.78.0.0/24 --mca oob_tcp_if_include 10.78.0.0/24)

now() { date +%s%N; }
seconds_since() { awk -v a="$1" -v b="$(now)" 'BEGIN { printf "%.2f", (b - a) / 1e9 }'; }
wrong=0
wrong() { echo "trial $trial ($what): $*"; wrong=$((wrong + 1)); }
comparable() { sed -E 's/"(examples_per_second|tokens_per_second|memory_bytes)": ?[^,}]*,?//g' "$1/metrics.jsonl"; }

check_survivors() {  # RUN RANK…
  local run=$1 rank; shift
  for rank in "$@"; do
    [ "$(cat "$run.$rank.code" 2>/dev/null)" = 8 ] || wrong "process $rank ended with $(cat "$run.$rank.code" 2>/dev/null), expected 8"
    [ "$(grep -c . "$run.$rank.error")" = 1 ] && grep -q '^error: step .*last checkpoint: ' "$run.$rank.error" ||
      wrong "process $rank said: $(cat "$run.$rank.error")"
  done
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

declare -A count=([kill]=0 [stop]=0 [cut]=0 [late]=0)
slowest=0
disturb() {  # KIND: one trial
  local kind=$1 processes=$((RANDOM % 2 + 2)) replicas=$((RANDOM % 2 + 1)) run=run$trial rank begin launcher survivors=() seconds
  [ "$kind" = cut ] && processes=2
  local victim=$((RANDOM % processes)) delay
  delay=$(awk -v r=$RANDOM -v whole="$whole" 'BEGIN { printf "%.3f", r / 32768 * whole }')
  what="$kind process $victim of $processes with $replicas replicas, $delay s after the first step"
  write_rank_script "$run" "$replicas"
  if [ "$kind" = cut ]; then timeout -k 5 90 "${over_cable[@]}" -n 2 sh "$work/$run.sh" >"$run.mpirun" 2>&1 &
  else timeout -k 5 90 "${mpirun[@]}" -n "$processes" sh "$work/$run.sh" >"$run.mpirun" 2>&1 &
  fi
  launcher=$!
  until [ -s "$run/metrics.jsonl" ] || ! kill -0 $launcher 2>/dev/null; do sleep 0.01; done
  sleep "$delay"
  for ((rank = 0; rank < processes; ++rank)); do
    [ -e "$run.$rank.code" ] && { count[late]=$((count[late] + 1)); wait $launcher; rm -rf "$run" "$run".*; return 1; }
    [ "$kind" != cut ] && [ $rank = $victim ] || survivors+=("$rank")
  done
  begin=$(now)
  case $kind in
    kill) kill -KILL "$(cat "$run.$victim.pid")" ;;
    stop) kill -STOP "$(cat "$run.$victim.pid")" ;;
    cut) ip -n "${hosts[1]}" link set eth0 down ;;
  esac
  for rank in "${survivors[@]}"; do
    until [ -s "$run.$rank.code" ] || [ "$(($(now) - begin))" -gt 20000000000 ]; do sleep 0.01; done
  done
  seconds=$(seconds_since "$begin")
  [ "$kind" = stop ] && kill -KILL "$(cat "$run.$victim.pid")"
  [ "$kind" = cut ] && ip -n "${hosts[1]}" link set eth0 up
  wait $launcher
  # One that had made its last step when the fault came ends well; so does everybody then.
  if [ "$(cat "$run.${survivors[0]}.code")" = 0 ]; then count[late]=$((count[late] + 1)); rm -rf "$run" "$run".*; return 1; fi
  count[$kind]=$((count[$kind] + 1))
  awk -v s="$seconds" -v t="$timeout" 'BEGIN { exit !(s <= t + 5) }' || wrong "the others took $seconds s"
  slowest=$(awk -v a="$slowest" -v b="$seconds" 'BEGIN { print (a > b ? a : b) }')
  check_survivors "$run" "${survivors[@]}"
  pgrep -f "$bin/pretrain.*--output $run " >/dev/null && wrong "a process is left"
  check_resumed "$run"
  rm -rf "$run" "$run".*
}

make_task
kinds=(kill stop)
if make_hosts 2>/dev/null; then kinds+=(cut); else echo "no cut links: network namespaces are not permitted here"; fi
trial=0 what="the undisturbed run"
begin=$(now)
"$bin/pretrain" "${flags[@]}" --output whole >whole.log 2>&1 || { cat whole.log; exit 1; }
whole=$(seconds_since "$begin")
while [ "$trial" -lt "$trials" ]; do
  trial=$((trial + 1))
  until disturb "${kinds[RANDOM % ${#kinds[@]}]}"; do :; done
done
echo "$trials trials, seed $seed: ${count[kill]} kills, ${count[stop]} stops, ${count[cut]} cuts (${count[late]} more came after the last step);" \
  "slowest exit of the others $slowest s with a timeout of $timeout s; $wrong wrong"
[ "$wrong" = 0 ]
