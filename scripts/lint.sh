#!/usr/bin/env bash
# Checks sources with clang-format and clang-tidy (.clang-format, .clang-tidy). usage: scripts/lint.sh [format|tidy] [all|FILE…]
# By default both check the files that differ from the main branch of the remote. `all` means every source file, to
# clang-tidy without the tests: it takes ten minutes of two cores for them. BUILD names a configured build directory for
# clang-tidy (default: build-dev, made if it is missing).
set -euo pipefail
cd "$(dirname "$0")/.."
tools='format tidy' build=${BUILD:-build-dev}
case ${1:-} in format | tidy) tools=$1; shift ;; esac
sources() { grep -E '\.(cpp|h|cu|js)$' <<<"$1" || true; }
case ${1:-} in
  '')
    base=$(git merge-base HEAD origin/main) || { echo "lint.sh: expected a branch main of the remote origin, got none; hint: name files, or all" >&2; exit 2; }
    names=$(git diff --name-only --diff-filter=d "$base" && git ls-files -o --exclude-standard)
    mapfile -t files < <(sources "$names")
    [ ${#files[@]} -gt 0 ] || { echo "lint.sh: no source file was changed"; exit 0; }
    ;;
  all)
    names=$(git ls-files)
    mapfile -t files < <(sources "$names")
    [ ${#files[@]} -gt 0 ] || { echo "lint.sh: expected source files in git's index, got none; hint: git add" >&2; exit 2; }
    ;;
  *) files=("$@") ;;
esac
status=0
if [[ $tools == *format* ]]; then
  command -v clang-format >/dev/null || scripts/install-packages.sh clang-format
  clang-format --dry-run -Werror "${files[@]}" || status=1
fi
if [[ $tools == *tidy* ]]; then
  command -v clang-tidy >/dev/null || scripts/install-packages.sh clang-tidy
  flags=()
  if [ "${1:-}" = all ]; then
    # The files of a library are read together, as a build without tests compiles them: a quarter of the time.
    build=build-tidy
    cmake -S . -B $build -G Ninja -DCMAKE_UNITY_BUILD=ON -DBERTRAND_CUDA=OFF >/dev/null
    sed -Ei 's/-fno-gnu-unique|-m(move|store)-max=[0-9]+//g' $build/compile_commands.json  # g++ alone knows them
    flags=(--checks=-bugprone-suspicious-include "--header-filter=$PWD/(apps|autograd|bench|bert|distributed|io|nn|optim|serving|tensor|training)/")
    # clang 14 can read neither the emulated GPU (std::source_location) nor tests that CAPTURE a structured binding.
    mapfile -t files < <(grep -oP '"file": "\K[^"]*' $build/compile_commands.json |
      grep -vE '\.cu$|emulation|build_hash|/tests/|/exercises/.*wrong' | sort -u)
  else
    [ -f "$build/compile_commands.json" ] || cmake --preset dev -B "$build" >/dev/null
  fi
  # A header is checked with those of the files that include it; .cu files need nvcc's words.
  printf '%s\n' "${files[@]}" | { grep -E '\.(cpp|cxx)$' || true; } | xargs -r -n 1 -P "$(nproc)" clang-tidy -p "$build" --quiet "${flags[@]}" 2>/dev/null || status=1
fi
exit $status
