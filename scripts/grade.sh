#!/usr/bin/env bash
# Grades an exercise (exercises/README.md). usage: scripts/grade.sh [NAME]
# Builds what the exercise needs and says "right", or what differs, entry by entry; the exit status is 0 if it is right.
# Without a name: all exercises in their order, and what was said of each as its file is now. BUILD names the build directory
# (default: build-dev or build, whichever is configured; else build-dev is made).
set -euo pipefail
cd "$(dirname "$0")/.."
names=$(sed -n 's/^[0-9]*\. \[\([a-z_]*\)\](.*/\1/p' exercises/README.md)
build=${BUILD:-build-dev}
[ -n "${BUILD:-}" ] || [ -f build-dev/CMakeCache.txt ] || [ ! -f build/CMakeCache.txt ] || build=build

graded() { echo "$build/exercises/$1.graded"; }  # what was said, and of which bytes
bytes_of() { cksum <"exercises/$1/$1.cpp"; }

if [ $# -eq 0 ]; then
  for name in $names; do
    said='not graded'
    if [ -f "$(graded "$name")" ] && [ "$(sed -n 2p "$(graded "$name")")" = "$(bytes_of "$name")" ]; then
      said=$(sed -n 1p "$(graded "$name")")
    fi
    printf '%-22s %-15s %s\n' "$name" "$said" "exercises/$name/$name.cpp"
  done
  echo "scripts/grade.sh NAME grades one of them"
  exit 0
fi
name=$1
if [ $# -gt 1 ] || ! grep -qxF -- "$name" <<<"$names"; then
  echo "error: grade.sh: expected one exercise, got $*; hint: scripts/grade.sh without a name lists them" >&2
  exit 2
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
if [ ! -f "$build/CMakeCache.txt" ]; then
  echo "configuring $build (once)"
  cmake --preset dev -B "$build" >"$log" 2>&1 || {
    tail -n 20 "$log"
    echo "error: grade.sh: cmake failed; hint: scripts/install-packages.sh installs what it needs" >&2
    exit 2
  }
fi
if grep -q 'autograd/' "exercises/$name/$name.h" && ! compgen -G "$build/bin/libbertrand_cpu_*" >/dev/null; then
  echo "building the engine (once, some minutes of processor time)"
  cmake --build "$build" --target bertrand_autograd bertrand_cpu
fi
if ! cmake --build "$build" --target "exercise_$name" >"$log" 2>&1; then
  # The compiler's own lines about the exercise, else the end of what was said.
  grep -A 3 -E "exercises/$name/.*error" "$log" | head -n 24 || tail -n 20 "$log"
  echo "$name: it does not compile"
  exit 1
fi
mkdir -p "$build/exercises"
status=0
{ timeout 60 "$build/bin/exercise_$name" >"$log" 2>&1; } 2>/dev/null || status=$?  # the shell's own line about a crash
case $status in
  0 | 1) ;;
  124) echo "not right yet: it did not end within 60 seconds" >>"$log" ;;
  *) echo "not right yet: it crashed (exit status $status); hint: an index out of range?" >>"$log" ;;
esac
# The hint would give away a task that no one has tried yet.
if git diff --quiet HEAD -- "exercises/$name/$name.cpp" 2>/dev/null; then
  sed -i 's/^hint: .*/the hint comes with your first attempt/' "$log"
fi
echo "$name: $(cat "$log")"
{ grep -oE '^(right|not right yet)' "$log" | tail -n 1; bytes_of "$name"; } >"$(graded "$name")"
[ $status -eq 0 ]
