#!/usr/bin/env bash
# Builds with ThreadSanitizer and runs the tests of the thread pool, kernels, replicas, processes, readers of corpora,
# and the server. A race ends its test.
# usage: scripts/test_threads.sh [BUILD_DIRECTORY]
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build-threads}
scripts/install-packages.sh
# The emulated GPUs are built too, because test programs link them; no test that runs them is chosen here: they run the
# threads of a block one after the other in one thread.
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=None -DCMAKE_CXX_FLAGS="-O1 -g1" -DBERTRAND_CUDA=OFF \
  -DBERTRAND_EXAMPLES=OFF -DBERTRAND_CPU_KERNELS=x86-64-v3 -DBERTRAND_SANITIZE=thread >/dev/null
cmake --build "$build" --target test_tensor test_distributed test_training test_bert test_apps test_serving
# One test of a pool of threads in a child process that it forks: ThreadSanitizer permits none after a fork by default.
export TSAN_OPTIONS="suppressions=$PWD/scripts/thread_suppressions.txt die_after_fork=0 second_deadlock_stack=1"
ctest --test-dir "$build" --no-tests=error --output-on-failure -j "$(nproc)" \
  -R '^tensor:.*thread|^distributed:|^training:.*replica|^apps:.*(replica|process|thread|hosts)' -E 'GPU|a cut link ends both|is stopped makes the other|however soon|plan bounds the memory'
"$build/bin/test_apps" --source-file='*apps/serve/*'
# Without the one that limits its memory, of which ThreadSanitizer needs more.
"$build/bin/test_bert" --source-file='*bert/data/*' --source-file-exclude='*test_record_fuzz*'
"$build/bin/test_serving"
