#!/usr/bin/env bash
# Builds for the GPU of this machine and tests the CUDA backend on it. usage: [BUILD=build-gpu] scripts/test_gpu.sh [PART…]
#   build      configures and builds what the other parts and bench/gpu.sh run; with CAPABILITY=90, for a GPU of compute capability
#              9.0 that another machine has
#   gpu        every case of tests/cuda_gpu, each in its own process: the op table, golden models, trajectories, memory
#   pretrain   a run of pretrain in each precision, on two GPUs if there are several
#   sanitizer  NVIDIA's compute-sanitizer over all ops and over steps of training; TOOLS names what it runs (memcheck initcheck synccheck;
#              racecheck ended with an internal error on every GPU so far: docs/cuda_on_a_card.md says how to find out why)
#   emulated   the same kernels in the emulation (tests/cuda_emulated)
# Without a PART it runs all of them. Name some if the GPU is yours for a few minutes only.
# A failure of build ends the script. After any other failure it continues, and it names all failures again at the end. What
# takes longer than LIMIT seconds (300) has failed, and so has what would begin more than BUDGET seconds after the script.
# A machine without network needs the folder .deps: make it with scripts/offline-deps.sh on a machine with network.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${BUILD:-build-gpu} limit=${LIMIT:-300} budget=${BUDGET:-86400} capability=${CAPABILITY:-} tools=${TOOLS:-memcheck initcheck synccheck}
(($#)) || set -- build gpu pretrain sanitizer emulated
for part; do
  case $part in
    build | gpu | pretrain | sanitizer | emulated) ;;
    *) echo "test_gpu.sh: expected build, gpu, pretrain, sanitizer or emulated, got $part" >&2; exit 2 ;;
  esac
done
[[ $* == build && -n $capability ]] || nvidia-smi >/dev/null 2>&1 || { echo "test_gpu.sh: expected a GPU, got none from nvidia-smi" >&2; exit 1; }
# shellcheck source=/dev/null
[ ! -f .deps/environment.sh ] || . .deps/environment.sh
export BERTRAND_NEEDS_GPU=1  # neither a module that cannot be loaded nor absent golden data is a reason to skip

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=()
fail() { echo "FAILED: $1" >&2; failed+=("$1"); }
check() {  # NAME COMMAND…
  ((SECONDS < budget)) || { fail "$1 (not begun: $budget s are over)"; return; }
  echo "== $1"
  local begin=$SECONDS status=0
  timeout -k 10 "$limit" "${@:2}" || status=$?  # what hangs in the driver may not heed the first signal
  case $status in
    0) ;;
    77) echo "   left something out" ;;  # and said what
    124 | 137) fail "$1 (more than $limit s)" ;;
    *) fail "$1" ;;
  esac
  echo "   $((SECONDS - begin)) s"
}

# A GPU is compared with kernels of the CPU that most machines have; those for AMX are left out.
build() {
  [ -n "$capability" ] || capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d .)
  cmake -S . -B "$build" -G "$(command -v ninja >/dev/null && echo Ninja || echo 'Unix Makefiles')" -DCMAKE_BUILD_TYPE=Release \
    -DBERTRAND_CUDA=ON -DCMAKE_CUDA_ARCHITECTURES="$capability-real" \
    -DBERTRAND_CPU_KERNELS="$([ "$(uname -m)" != x86_64 ] || echo 'x86-64-v3;x86-64-v4;x86-64-v4-bf16')" >/dev/null
  cmake --build "$build" --target test_cuda_gpu test_cuda_emulated pretrain bench_step bench_ceiling -j "$(nproc)"
}

cases() { "$build/bin/test_cuda_gpu" --list-test-cases --no-version | grep -v -e '^\[doctest\]' -e '^=*$'; }

# Each case has a process: a CUDA context does not recover from some errors. A filter separates names by commas.
gpu() {
  local name names
  names=$(cases) || { fail "gpu: $build/bin/test_cuda_gpu lists no cases"; return; }
  while read -r name; do check "gpu: $name" "$build/bin/test_cuda_gpu" --no-version -tc="${name//,/\\,}" </dev/null; done <<<"$names"
}

pretrain() {
  local precision c device devices=cuda gpus
  gpus=$(nvidia-smi -L | grep -c '^GPU ') || true
  [ -z "${CUDA_VISIBLE_DEVICES+set}" ] || gpus=$(tr , '\n' <<<"$CUDA_VISIBLE_DEVICES" | grep -c .) || true
  [ "$gpus" -lt 2 ] || devices="cuda cuda:0,cuda:1"
  printf '[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n' >"$work/vocab.txt"
  for c in {a..z}; do printf '%s\n##%s\n' "$c" "$c" >>"$work/vocab.txt"; done
  for c in $(seq 200); do echo "a b c d e f g"; echo "h i j k l m n"; ((c % 5)) || echo; done >"$work/text.txt"
  echo '{"vocab_size": 57, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 128, "max_position_embeddings": 32, "type_vocab_size": 2}' >"$work/config.json"
  for device in $devices; do for precision in f32 tf32 bf16 f16; do
    check "pretrain in $precision on $device" "$build/bin/pretrain" --config "$work/config.json" --vocab-file "$work/vocab.txt" --input "$work/text.txt" \
      --output "$work/$device-$precision" --steps 20 --max-seq-length 24 --micro-batch-size 16 --device "$device" --precision "$precision"
  done; done
}

# Only this project's kernels are judged: those of cuBLASLt synchronize in ways that older tools misread, and NVIDIA's libraries
# try calls that fail. initcheck must see every write, and knows the writes of Hopper's bulk copies since 2025.4.
sanitizer() {
  local sanitizer tool name names flags
  sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
  [ -x "$sanitizer" ] || { fail 'compute-sanitizer: not found'; return; }
  names=$(cases) || { fail "sanitizer: $build/bin/test_cuda_gpu lists no cases"; return; }
  for name in 'every op on the * has the same bits twice' 'training on the * has the same bits twice'; do
    # A filter that fits no case would pass.
    grep -xq "${name/\*/.*}" <<<"$names" || { fail "sanitizer: no case \"$name\" in tests/cuda_gpu"; continue; }
    for tool in $tools; do
      case $tool in
        memcheck) flags=(--report-api-errors no) ;;
        initcheck)
          flags=()
          printf '%s\n' 2025.4 "$("$sanitizer" --version | grep -o '20[0-9][0-9]\.[0-9]*' | head -n 1)" | sort -CV ||
            { echo "== compute-sanitizer initcheck: left out, older than 2025.4"; continue; } ;;
        *) flags=(--kernel-name kns=bertrand) ;;
      esac
      check "compute-sanitizer $tool: $name" "$sanitizer" --tool "$tool" "${flags[@]}" --error-exitcode 1 "$build/bin/test_cuda_gpu" --no-version -tc="$name"
    done
  done
}

emulated() { check 'emulated' "$build/bin/test_cuda_emulated"; }

for part; do "$part"; done
for name in "${failed[@]}"; do echo "FAILED: $name" >&2; done
[ ${#failed[@]} -eq 0 ]
