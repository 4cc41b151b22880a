#!/usr/bin/env bash
# Builds with AddressSanitizer and UndefinedBehaviorSanitizer and runs the tests of every op, the kernels of the CPU and
# the emulated kernels of CUDA, and of every reader of outside bytes, on the inputs that the fuzzers begin with and found.
# usage: scripts/test_sanitized.sh [BUILD_DIRECTORY]
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build-sanitized}
scripts/install-packages.sh
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=None -DCMAKE_CXX_FLAGS="-O1 -D_GLIBCXX_ASSERTIONS" -DBERTRAND_CUDA=OFF \
  -DBERTRAND_EXAMPLES=OFF -DBERTRAND_CPU_KERNELS=x86-64-v3 -DBERTRAND_SANITIZE=address,undefined \
  -DCMAKE_UNITY_BUILD=ON >/dev/null
cmake --build "$build" --target test_tensor test_autograd test_cuda_emulated test_fuzz
# The tests that are left out take minutes and run no kernel that the others do not run.
ctest --test-dir "$build" --no-tests=error --output-on-failure -j "$(nproc)" -R '^(tensor|autograd|cuda_emulated|fuzz):' \
  -E 'emulated GPU (leaves its inputs alone|has the same bits|equals the CPU)|central differences|adds up even and odd'
