#!/usr/bin/env bash
# Builds for the card that is here and tests the CUDA backend on it. usage: scripts/test_gpu.sh [BUILD_DIRECTORY]
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
fi
cmake -S . -B "$build" -G "$(command -v ninja >/dev/null && echo Ninja || echo 'Unix Makefiles')" -DCMAKE_BUILD_TYPE=Release \
  -DBERTRAND_CUDA=ON -DCMAKE_CUDA_ARCHITECTURES="$capability-real" "${prefix[@]}" >/dev/null
cmake --build "$build" --target test_gpu bertrand_cuda -j "$(nproc)"
"$build/bin/test_gpu"
for tool in memcheck racecheck initcheck synccheck; do
  echo "== compute-sanitizer $tool"
  compute-sanitizer --tool "$tool" --error-exitcode 1 "$build/bin/test_gpu" -tc='*same bits twice*'
done
