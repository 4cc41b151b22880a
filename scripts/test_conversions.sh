#!/usr/bin/env bash
# Builds with clang's UndefinedBehaviorSanitizer, numbers that a conversion changes among what it finds (a float beyond the
# range of an integer; an integer cut, or with another sign, where no cast says so), and runs the tests of io, tensors with the
# CPU's kernels, optimizers, and texts and data, or those named, of what clang 14 compiles (the emulation of CUDA it does not:
# neither test_bert nor test_training). A finding ends its test program.
# AGAINST=build/bin builds the programs so too, runs them as bench/same_outputs.sh does, and holds every byte that they write to
# what the programs of that folder write, which another compiler may have made.
# usage: [AGAINST=BIN] scripts/test_conversions.sh [BUILD_DIRECTORY [TEST_PROGRAM…]]
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build-conversions}
programs=("${@:2}")
[ ${#programs[@]} -gt 0 ] || programs=(test_io test_tensor test_optim test_bert_reading)
command -v clang++ >/dev/null || scripts/install-packages.sh clang libclang-rt-14-dev
mkdir -p "$build"
echo 'src:/usr/*' >"$build/others.txt"  # headers of libraries, whose conversions are their own
rm -f "$build/CMakeCache.txt"  # one of another C compiler would lose all that is set here
cmake -S . -B "$build" -G Ninja -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_BUILD_TYPE=None -DBERTRAND_CUDA=OFF -DBERTRAND_EXAMPLES=OFF \
  -DCMAKE_CXX_FLAGS="-O1 -g1 -fsanitize-ignorelist=$(realpath "$build")/others.txt" -DBERTRAND_CPU_KERNELS=x86-64-v3 \
  -DBERTRAND_SANITIZE=undefined,float-cast-overflow,implicit-conversion >/dev/null
cmake --build "$build" --target "${programs[@]}"
status=0
for program in "${programs[@]}"; do
  echo "$program"
  "$build/bin/$program" || status=1
done
if [ -n "${AGAINST:-}" ]; then
  cmake --build "$build" --target prepare pretrain finetune extract
  bench/same_outputs.sh "$AGAINST" "$build/bin" || status=1
fi
exit $status
