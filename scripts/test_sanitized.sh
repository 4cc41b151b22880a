#!/usr/bin/env bash
# Builds with AddressSanitizer and UndefinedBehaviorSanitizer, and passes the tests of every op: the processor's kernels,
# and those of CUDA in their emulation. usage: scripts/test_sanitized.sh [BUILD_DIRECTORY]
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build-sanitized}
scripts/install-packages.sh
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=None -DCMAKE_CXX_FLAGS=-O1 -DBERTRAND_CUDA=OFF \
  -DBERTRAND_EXAMPLES=OFF -DBERTRAND_CPU_KERNELS=x86-64-v3 -DBERTRAND_SANITIZE=address,undefined >/dev/null
cmake --build "$build" --target test_tensor test_autograd test_cuda
# What is left out runs the kernels of the other tests again, for minutes.
ctest --test-dir "$build" --no-tests=error --output-on-failure -j "$(nproc)" -R '^(tensor|autograd|cuda):' -E 'emulated card leaves its inputs alone|emulated card has the same bits|central differences'
