#!/usr/bin/env bash
# Holds the model of docs/scaling.md against steps on this machine. Needs root (network namespaces), MPI and two cores.
# usage: bench/scaling_check.sh [SECONDS] [MODEL:MICRO_BATCH:MICRO_BATCHES:LINK,LINK…]…
#   SECONDS of each measurement; MICRO_BATCHES of each replica and step. The links:
#   threads    two replicas in threads of one process
#   memory     two processes on one host
#   cable      two processes on two hosts (network namespaces); the cable is as fast as the machine
#   200mbit    the same; tc throttles the cable to this rate
# The inputs of the model are measured one by one: the parts of a step of two replicas that compute side by side without a
# link; a sum of one number; a sum of one bucket of the gradients, and the CPU time that it takes. Then the step is measured.
# Each row ends with the ratio of predicted to measured time.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-5}
settings=("${@:2}")
# shellcheck disable=SC2054  # the links of a setting are separated by commas
[ ${#settings[@]} -gt 0 ] || settings=(tiny:16:1:threads,memory,cable,1gbit,200mbit,50mbit tiny:8:2:cable,1gbit,200mbit tiny:8:4:cable,200mbit
                                       small:4:1:threads,memory,cable,1gbit,200mbit small:4:2:cable,200mbit small:2:4:cable,200mbit)
build=${BUILD:-build} slice=25165824  # bytes that leave together (distributed/gradient_sum.h)
bench=$PWD/$build/bin/bench_scaling work=$(mktemp -d)
cmake --build "$build" --target bench_scaling >/dev/null
. scripts/two_hosts.sh
trap 'remove_hosts; rm -rf "$work"' EXIT
make_hosts "$work"

field() { sed -n "s/.*\"$1\":\"\?\([^,\"}]*\).*/\1/p"; }
calculate() { awk "BEGIN { printf \"%.9g\", $1 }"; }
# run_pair LINK ARGUMENT…: two replicas, with one core each
run_pair() {
  local link=$1; shift
  case $link in
    threads) "$bench" "$@" --replicas 2 --threads 2 ;;
    memory) "${mpirun[@]}" -n 2 "$bench" "$@" --threads 1 2>/dev/null ;;
    *) "${over_cable[@]}" -n 2 "$bench" "$@" --threads 1 2>/dev/null ;;
  esac
}

# The parts of a step: alone[forward_s], …; of the slower one, for which the other waits.
declare -A alone
measure_alone() {  # MODEL MICRO_BATCH MICRO_BATCHES
  local key step a b
  step=("$bench" alone --model "$1" --micro-batch "$2" --micro-batches "$3" --threads 1 --seconds "$seconds")
  "${step[@]}" >"$work/a" &
  "${step[@]}" >"$work/b"
  wait $!
  a=$(field step_s <"$work/a") b=$(field step_s <"$work/b")
  for key in forward_s backward_s update_s gradient_bytes late_bytes; do
    alone[$key]=$(field $key <"$work/$(awk "BEGIN { print ($a > $b ? \"a\" : \"b\") }")")
  done
}

# What is known of a link by itself: empty, bandwidth, processor
declare -A sums
measure_link() {  # LINK BYTES: of a sum of that size
  local sum=${sums[$1:$2]:-}
  [ -n "$sum" ] || sum="$(run_pair "$1" sum --elements 1 --seconds 1) $(run_pair "$1" sum --elements $(($2 / 4)) --seconds "$seconds")"
  sums[$1:$2]=$sum
  empty=$(field sum_s <<<"${sum%%\}*}}")
  bandwidth=$(calculate "$2 / $(field sum_s <<<"$sum")")  # of two replicas each sends as many bytes as it has
  processor=$(calculate "$(field processor_s <<<"$sum") / $2")
}

printf '%-6s %12s %8s %9s %11s %11s %11s %7s\n' model micro-batch link computing not-hidden predicted-s measured-s ratio
for setting in "${settings[@]}"; do
  IFS=: read -r model micro_batch count links <<<"$setting"
  for link in ${links//,/ }; do
    if [[ $link == *bit ]]; then throttle "$link"; else throttle ""; fi
    measure_alone "$model" "$micro_batch" "$count"  # in every row: the machine does not stay the same
    measure_link "$link" "$((alone[gradient_bytes] < slice ? alone[gradient_bytes] : slice))"
    terms=(replicas=2 messages=1 calls=2 "forward=${alone[forward_s]}" "backward=${alone[backward_s]}" "update=${alone[update_s]}"
           "bytes=${alone[gradient_bytes]}" "late=${alone[late_bytes]}" "bandwidth=$bandwidth" "processor=$processor" "latency=$empty")
    # Threads sum everything when backward has ended, and do it themselves.
    [ "$link" != threads ] || terms+=("late=${alone[gradient_bytes]}" "slice=${alone[gradient_bytes]}" processor=0)
    read -r predicted hidden share <<<"$(bench/scaling_model.sh "${terms[@]}")"
    measured=$(run_pair "$link" train --model "$model" --micro-batch "$micro_batch" --micro-batches $((2 * count)) \
      --seconds "$seconds" | field median_s)
    printf '%-6s %12s %8s %8.0f%% %11.3f %11.3f %11.3f %7.3f\n' "$model" "$count x $micro_batch" "$link" \
      "$(calculate "100 * $share")" "$hidden" "$predicted" "$measured" "$(calculate "$predicted / $measured")"
  done
done
