#!/usr/bin/env bash
# Feeds bytes that libFuzzer makes to every reader of bytes from outside, under AddressSanitizer and
# UndefinedBehaviorSanitizer. usage: scripts/fuzz.sh [--merge] SECONDS [TARGET…]
# A target is a file in tests/fuzz, by default all, each for SECONDS. It prints a line for each: inputs run, coverage,
# inputs in its corpus, findings. A finding is a crash, an input that takes more than 5 s or 512 MB, or anything thrown that
# is no Error; its input is left in build-fuzz/findings/TARGET and the exit code is 1. RUNS ends a target after so many
# inputs, if its seconds allow. BUILD names another build directory, KERNELS another set of CPU kernels.
# A target begins with what was made by hand for it (tests/fuzz/corpus) and found before (tests/fuzz/found, an input in each
# line). --merge writes its file of these anew: of all that was found so far, the first 512 bytes of few inputs that reach as
# much code as all do, beside those made by hand. tests/fuzz/test_corpus.cpp runs both.
set -euo pipefail
cd "$(dirname "$0")/.."
merge=no
[ "${1:-}" != --merge ] || { merge=yes; shift; }
[[ ${1:-} =~ ^[0-9]+$ ]] || { sed -n '2,10s/^# //p' "$0" >&2; exit 2; }
seconds=$1 build=${BUILD:-build-fuzz}
shift
known() { find tests/fuzz/*/ -name '*.cpp' -printf '%f\n' | sed 's/\.cpp$//' | sort; }
mapfile -t targets < <(if [ $# -gt 0 ]; then printf '%s\n' "$@"; else known; fi)
for target in "${targets[@]}"; do
  known | grep -qx "$target" || { echo "fuzz.sh: expected one of $(known | paste -sd ' '), got $target" >&2; exit 2; }
done
command -v clang++ >/dev/null && compgen -G '/usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.fuzzer*' >/dev/null ||
  scripts/install-packages.sh clang libclang-rt-14-dev
cmake -S . -B "$build" -G Ninja -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_BUILD_TYPE=None -DCMAKE_CXX_FLAGS='-O1 -g1' \
  -DBERTRAND_CUDA=OFF -DBERTRAND_EXAMPLES=OFF -DBERTRAND_FUZZ=ON -DBERTRAND_CPU_KERNELS="${KERNELS:-x86-64-v3}" \
  -DBERTRAND_SANITIZE=fuzzer-no-link,address,undefined,float-cast-overflow >/dev/null
kernels=
[[ ! " ${targets[*]} " =~ \ (dialects|moments)\  ]] || kernels=bertrand_cpu
cmake --build "$build" --target "${targets[@]/#/fuzz_}" $kernels >"$build/build.log" || { tail -n 40 "$build/build.log"; exit 1; }

# What AddressSanitizer keeps of freed memory is not the target's: 256 MB by default, of 512.
export ASAN_OPTIONS=quarantine_size_mb=64
status=0
for target in "${targets[@]}"; do
  new=$build/corpus/$target findings=$build/findings/$target log=$build/fuzz_$target.log kept=tests/fuzz/corpus/$target
  known=$build/known/$target found_before=tests/fuzz/found/$target.base64
  rm -rf "$known"
  mkdir -p "$new" "$findings" "$kept" "$known"
  number=0
  [ ! -f "$found_before" ] || while read -r line; do
    number=$((number + 1))
    base64 -d <<<"$line" >"$known/$number"
  done <"$found_before"
  before=$(find "$findings" -type f | wc -l)
  limits=(-timeout=5 -rss_limit_mb=512 -max_len=4096)
  # Errors are messages of the program, which libFuzzer's own lines must not drown in.
  "$build/bin/fuzz_$target" "$new" "$kept" "$known" "${limits[@]}" -max_total_time="$seconds" -runs="${RUNS:--1}" -artifact_prefix="$findings/" \
    -print_final_stats=1 >"$log" 2>&1 || true
  found=$(($(find "$findings" -type f | wc -l) - before))
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  # A program that ended in another way than by the clock has found something, with or without an input to show.
  [ -n "$runs" ] && grep -q '^Done ' "$log" && [ "$found" = 0 ] || { status=1; [ "$found" -gt 0 ] || found=1; }
  if [ $merge = yes ]; then
    cover=$build/cover/$target
    rm -rf "$cover"
    mkdir -p "$cover" tests/fuzz/found
    cp -t "$cover" "$kept"/*
    "$build/bin/fuzz_$target" -set_cover_merge=1 -use_counters=0 "${limits[@]}" -max_len=512 "$cover" "$known" "$new" >"$log.merge" 2>&1 || status=1
    for file in "$kept"/*; do rm "$cover/${file##*/}"; done
    find "$cover" -type f -exec base64 -w 0 {} \; -exec echo \; | sort >"$found_before"
  fi
  printf '%-16s %10s runs  %6s edges  %5s inputs  %s findings\n' "$target" "${runs:-?}" \
    "$(grep -o 'cov: [0-9]*' "$log" | tail -n 1 | cut -c6-)" "$(find "$new" "$kept" -type f | wc -l)" "$found"
done
exit $status
