#!/usr/bin/env bash
# A table of serve beside LitServe and FastAPI with ONNX Runtime: closed loop with wrk, then Poisson arrivals up to four
# times what the best peer answers. The same texts, in the order of arrival, on the same cores.
# usage: bench/serve.sh MODEL MODEL.onnx TEXTS
#   MODEL       a classifier's directory              MODEL.onnx  the same model; the fastest file that you can make: of
#   TEXTS       a file with a text a line                         export --format onnx, by onnxruntime.transformers.optimizer
# Environment: PYTHON, with onnxruntime tokenizers numpy litserve fastapi uvicorn uvloop httptools (pip install); wrk of
# Debian; SECONDS_EACH (20), ROUNDS (3), CONNECTIONS ("1 8 32 128"), SERVERS ("serve litserve fastapi"), BUILD (build).
set -euo pipefail
cd "$(dirname "$0")/.."
usage='usage: bench/serve.sh MODEL MODEL.onnx TEXTS'
model=${1:?$usage} onnx=${2:?$usage}
export TEXTS=${3:?$usage}
python=${PYTHON:-python3} build=${BUILD:-build} seconds=${SECONDS_EACH:-20} rounds=${ROUNDS:-3}
connections=${CONNECTIONS:-1 8 32 128} peers=bench/peers servers=${SERVERS:-serve litserve fastapi} port=8517
cmake --build "$build" --target serve bertrand_backends >/dev/null
work=$(mktemp -d)
pid=
stop() { [ -z "$pid" ] || { kill -TERM -- "-$pid" 2>/dev/null || true; wait "$pid" 2>/dev/null || true; }; pid=; }
trap 'stop; rm -rf "$work"' EXIT
# Without the rank of a real-time process: on the same cores the clients would not get to ask.

start() {  # SERVER: waits for its first answer, and says after how long it came
  local begin body='{"inputs": "a first text"}'
  begin=$(date +%s%N)
  case $1 in
    serve) setsid "$build/bin/serve" --model "$model" --port $port >"$work/log" 2>&1 & ;;
    *) setsid "$python" "$peers/serve_$1.py" "$model" "$onnx" $port >"$work/log" 2>&1 & ;;
  esac
  pid=$!
  until curl -sf -m 5 -o /dev/null -H 'Content-Type: application/json' -d "$body" http://127.0.0.1:$port/predict; do
    kill -0 "$pid" || { cat "$work/log" >&2; exit 1; }
    sleep 0.02
  done
  started=$((($(date +%s%N) - begin) / 1000000))
}
# What the server's processes took: their memory in MB, and their time in seconds.
of_group() { ps -o "$1=" -g "$pid" | awk "$2"; }
memory() { of_group rss '{ sum += $1 } END { printf "%d", sum / 1024 }'; }
cpu() { of_group cputimes '{ sum += $1 } END { printf "%d", sum }'; }

printf '%-9s %5s %11s %10s %9s %9s %7s %9s %10s %8s\n' server round connections requests/s 'p50 ms' 'p99 ms' 'no 200' 'RSS MB' 'CPU ms' 'start ms'
best=0
for round in $(seq "$rounds"); do
  for server in $servers; do
    start "$server"
    wrk -t1 -c8 -d"$((seconds / 4 + 1))s" -s bench/peers/texts.lua http://127.0.0.1:$port >/dev/null
    for count in $connections; do
      before=$(cpu)
      read -r _ rate p50 p99 errors < <(wrk -t1 -c"$count" -d"${seconds}s" -s bench/peers/texts.lua http://127.0.0.1:$port | grep RESULT)
      printf '%-9s %5d %11d %10s %9s %9s %7s %9s %10s %8s\n' "$server" "$round" "$count" "$rate" "$p50" "$p99" "$errors" "$(memory)" \
        "$(awk "BEGIN { printf \"%.2f\", ($(cpu) - $before) * 1000 / ($rate * $seconds + 1e-9) }")" "$started"
      [ "$server" = serve ] || best=$(awk "BEGIN { print ($rate > $best ? $rate : $best) }")
    done
    stop
  done
done
echo
printf '%-9s %9s %10s %9s %9s %7s %11s %7s\n' server offered/s answered/s 'p50 ms' 'p99 ms' 429 '429 p99 ms' others
for server in $servers; do
  start "$server"
  for share in 0.5 0.8 1.2 4; do
    offered=$(awk "BEGIN { print ($best > 0 ? $best : $rate) * $share }")
    read -r _ rate_answered p50 p99 refused refused_p99 others < <("$python" bench/peers/open_loop.py $port "$offered" "$seconds" "$TEXTS")
    printf '%-9s %9.0f %10s %9s %9s %7s %11s %7s\n' "$server" "$offered" "$rate_answered" "$p50" "$p99" "$refused" "$refused_p99" "$others"
  done
  stop
done
