#!/usr/bin/env bash
# Builds for the card that is here and tests the CUDA backend on it. usage: scripts/test_gpu.sh [BUILD_DIRECTORY]
# What it runs: the op table and whole models on the card (tests/gpu), the same kernels emulated (tests/cuda),
# a run of pretrain on the card, and NVIDIA's compute-sanitizer over all ops.
# On a machine without network, run scripts/offline-deps.sh on one with it first and bring the .deps folder along.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build-gpu}
nvidia-smi >/dev/null 2>&1 || { echo "test_gpu.sh: no card here: nvidia-smi finds none" >&2; exit 1; }
capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d .)
prefix=()
if [ -d .deps/usr ]; then
  prefix=("-DCMAKE_PREFIX_PATH=$PWD/.deps/usr" "-DCMAKE_LIBRARY_PATH=$PWD/.deps/usr/lib/$(uname -m)-linux-gnu")
  export LD_LIBRARY_PATH="$PWD/.deps/usr/lib/$(uname -m)-linux-gnu:${LD_LIBRARY_PATH:-}"
  export PATH="$PATH:$PWD/.deps/usr/bin"
  export PKG_CONFIG_PATH="$PWD/.deps/usr/lib/$(uname -m)-linux-gnu/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$PWD/.deps"
fi
cmake -S . -B "$build" -G "$(command -v ninja >/dev/null && echo Ninja || echo 'Unix Makefiles')" -DCMAKE_BUILD_TYPE=Release \
  -DBERTRAND_CUDA=ON -DCMAKE_CUDA_ARCHITECTURES="$capability-real" "${prefix[@]}" >/dev/null
cmake --build "$build" --target test_gpu test_cuda bertrand_cuda bertrand_cuda_emulated pretrain -j "$(nproc)"

export BERTRAND_NEEDS_CARD=1  # a module that cannot be loaded is no reason to skip
failed=()
check() {  # NAME COMMAND…: goes on after a failure, so that one call tells all there is to know
  echo "== $1"
  "${@:2}" || failed+=("$1")
}
check 'on the card' "$build/bin/test_gpu"
check 'emulated' "$build/bin/test_cuda"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
printf '[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n' >"$work/vocab.txt"
for c in {a..z}; do printf '%s\n##%s\n' "$c" "$c" >>"$work/vocab.txt"; done
for i in $(seq 200); do echo "a b c d e f g"; echo "h i j k l m n"; ((i % 5)) || echo; done >"$work/text.txt"
echo '{"vocab_size": 57, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 128, "max_position_embeddings": 32, "type_vocab_size": 2}' >"$work/config.json"
for precision in f32 tf32 bf16 f16; do
  check "pretrain in $precision" "$build/bin/pretrain" --config "$work/config.json" --vocab-file "$work/vocab.txt" --input "$work/text.txt" \
    --output "$work/$precision" --steps 20 --max-seq-length 24 --device cuda --precision "$precision"
done

sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
if [ -x "$sanitizer" ]; then
  for tool in memcheck racecheck initcheck synccheck; do
    check "compute-sanitizer $tool" "$sanitizer" --tool "$tool" --error-exitcode 1 "$build/bin/test_gpu" -tc='every op on the card has the same bits twice'
  done
else
  failed+=("compute-sanitizer: not found")
fi
for name in "${failed[@]}"; do echo "FAILED: $name" >&2; done
[ ${#failed[@]} -eq 0 ]
