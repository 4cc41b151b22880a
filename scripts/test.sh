#!/usr/bin/env bash
# Installs what is missing, builds everything and runs every test. usage: [CUDAARCHS=90-real] scripts/test.sh [BUILD_DIRECTORY]
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build}
scripts/install-packages.sh
# The files of a library are compiled together, as for the packages. -U: forget what an earlier configuration of this folder
# left out.
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DBERTRAND_TESTS=ON -DBERTRAND_EXAMPLES=ON -DCMAKE_UNITY_BUILD=ON -UBERTRAND_CUDA -UBERTRAND_CPU_KERNELS \
  -UCMAKE_CUDA_ARCHITECTURES ${CUDAARCHS:+-DCMAKE_CUDA_ARCHITECTURES=$CUDAARCHS} >/dev/null
cmake --build "$build"
ctest --test-dir "$build" --no-tests=error --output-on-failure -j "$(nproc)"
