#!/usr/bin/env bash
# Builds for the card that is here and tests the CUDA backend on it. usage: [BUILD=build-gpu] scripts/test_gpu.sh [PART…]
#   build      configures and builds what the other parts run
#   card       every case of tests/gpu, in a process of its own: the op table, golden models, trajectories, memory
#   pretrain   a run of pretrain in each precision
#   sanitizer  NVIDIA's compute-sanitizer over all ops and over steps of training
#   emulated   the same kernels on the processor (tests/cuda)
# Without a PART all of them, what only a card can tell first; with some, these in their order, for a card that is lent for minutes.
# It goes on after a failure of any part but build, so that one call tells all there is to know, and names all failures again at the end.
# On a machine without network, run scripts/offline-deps.sh on one with it first and bring the .deps folder along.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${BUILD:-build-gpu}
(($#)) || set -- build card pretrain sanitizer emulated
for part; do
  case $part in
    build | card | pretrain | sanitizer | emulated) ;;
    *) echo "test_gpu.sh: expected build, card, pretrain, sanitizer or emulated, got $part" >&2; exit 2 ;;
  esac
done
nvidia-smi >/dev/null 2>&1 || { echo "test_gpu.sh: no card here: nvidia-smi finds none" >&2; exit 1; }
[ ! -f .deps/environment.sh ] || . .deps/environment.sh
export BERTRAND_NEEDS_CARD=1  # neither a module that cannot be loaded nor absent golden data is a reason to skip

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=()
fail() { echo "FAILED: $1" >&2; failed+=("$1"); }
check() {  # NAME COMMAND…
  echo "== $1"
  local begin=$SECONDS
  "${@:2}" || fail "$1"
  echo "   $((SECONDS - begin)) s"
}

build() {
  local capability
  capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d .)
  cmake -S . -B "$build" -G "$(command -v ninja >/dev/null && echo Ninja || echo 'Unix Makefiles')" -DCMAKE_BUILD_TYPE=Release \
    -DBERTRAND_CUDA=ON -DCMAKE_CUDA_ARCHITECTURES="$capability-real" >/dev/null
  cmake --build "$build" --target test_gpu test_cuda pretrain -j "$(nproc)"
}

cases() { "$build/bin/test_gpu" --list-test-cases --no-version | grep -v -e '^\[doctest\]' -e '^=*$'; }

# A case by itself: an error that a context does not recover from fails no other case. Commas separate names in a filter.
card() {
  local name names
  names=$(cases) || { fail "card: $build/bin/test_gpu lists no cases"; return; }
  while read -r name; do check "card: $name" "$build/bin/test_gpu" --no-version -tc="${name//,/\\,}" </dev/null; done <<<"$names"
}

pretrain() {
  local precision c
  printf '[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n' >"$work/vocab.txt"
  for c in {a..z}; do printf '%s\n##%s\n' "$c" "$c" >>"$work/vocab.txt"; done
  for c in $(seq 200); do echo "a b c d e f g"; echo "h i j k l m n"; ((c % 5)) || echo; done >"$work/text.txt"
  echo '{"vocab_size": 57, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 128, "max_position_embeddings": 32, "type_vocab_size": 2}' >"$work/config.json"
  for precision in f32 tf32 bf16 f16; do
    check "pretrain in $precision" "$build/bin/pretrain" --config "$work/config.json" --vocab-file "$work/vocab.txt" --input "$work/text.txt" \
      --output "$work/$precision" --steps 20 --max-seq-length 24 --device cuda --precision "$precision"
  done
}

sanitizer() {
  local sanitizer tool name names
  sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
  [ -x "$sanitizer" ] || { fail 'compute-sanitizer: not found'; return; }
  names=$(cases) || { fail "sanitizer: $build/bin/test_gpu lists no cases"; return; }
  for name in 'every op on the card has the same bits twice' 'training on the card has the same bits twice'; do
    # A filter that no case has would pass.
    grep -Fxq "$name" <<<"$names" || { fail "sanitizer: no case \"$name\" in tests/gpu"; continue; }
    for tool in memcheck racecheck initcheck synccheck; do
      check "compute-sanitizer $tool: $name" "$sanitizer" --tool "$tool" --error-exitcode 1 "$build/bin/test_gpu" --no-version -tc="$name"
    done
  done
}

emulated() { check 'emulated' "$build/bin/test_cuda"; }

for part; do "$part"; done
for name in "${failed[@]}"; do echo "FAILED: $name" >&2; done
[ ${#failed[@]} -eq 0 ]
