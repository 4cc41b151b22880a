#!/usr/bin/env bash
# Installs a build into a folder, moves that, and uses it as others would: programs by their installed names, a project that
# finds the package with CMake, one that asks pkg-config. usage: tests/install.sh BUILD
set -euo pipefail
build=$(cd "${1:?usage: tests/install.sh BUILD}" && pwd)
cd "$(dirname "$0")"
example=../examples/tiny_bert.cpp
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
expect() {  # WHAT EXPECTED GOT
  [[ $3 == *"$2"* ]] || { echo "$1: expected $2, got $3"; exit 1; }
}

cmake --install "$build" --prefix "$work/first" >/dev/null
mv "$work/first" "$work/moved"
library=$(dirname "$(find "$work/moved" -name libbertrand_tensor.a)")
version=$(sed -n 's/^project(bertrand VERSION \([0-9.]*\).*/\1/p' ../CMakeLists.txt)

# The programs find their modules wherever they are, and a name that is none says which there are.
export PATH=$work/moved/bin:$PATH
expect "bertrand --version" "bertrand $version" "$(bertrand --version)"
expect "modules" cpu_x86-64-v "$(bertrand pretrain --version)"
for program in "$work"/moved/bin/bertrand-*; do
  expect "$program --help" "Usage: $(basename "$program")" "$("$program" --help)"
  expect "manual pages" "bertrand-" "$(ls "$work/moved/share/man/man1/$(basename "$program").1.gz")"
done
code=0
said=$(bertrand "prepare pretrain" 2>&1) || code=$?
expect "bertrand of two names at once" "error: expected one of: prepare pretrain " "$said"
expect "its exit code" 2 $code
printf 'The sun rises in the east.\nIt sets in the west.\n\nRain falls from clouds.\nSnow falls in winter.\n' >"$work/text"
bertrand prepare vocab --input "$work/text" --output "$work/vocab.txt" --size 60 >/dev/null 2>&1
bertrand pretrain --input "$work/text" --vocab-file "$work/vocab.txt" --config tiny --steps 2 --output "$work/run" >/dev/null 2>&1
bertrand-pretrain --resume --steps 3 --output "$work/run" >/dev/null 2>"$work/log" || { cat "$work/log"; exit 1; }

# A project that uses CMake. Every header compiles with what is installed.
(cd "$work/moved/include/bertrand" && find . -name '*.h' | sed 's|^\./\(.*\)|#include "\1"|' | LC_ALL=C sort) >"$work/headers.cpp"
configure=(cmake -S consumer -DCMAKE_PREFIX_PATH="$work/moved" -DEXAMPLE="$PWD/$example" -DHEADERS="$work/headers.cpp" -DCMAKE_CXX_FLAGS=-O0)
"${configure[@]}" -B "$work/consumer" -DCOMPONENTS="bert;optim" >/dev/null
cmake --build "$work/consumer" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
# A program elsewhere looks where the package was to be installed, unless it is told.
export BERTRAND_MODULES=$library/bertrand
"$work/consumer/consumer" >"$work/by_cmake"
if said=$("${configure[@]}" -B "$work/wrong" -DCOMPONENTS="bert;nothing" 2>&1); then
  echo "a component that there is not: expected a refusal, got none"; exit 1
fi
expect "a component that there is not" "got nothing" "$(tr -s ' \n' ' ' <<<"$said")"

# One that asks pkg-config.
export PKG_CONFIG_PATH=$library/pkgconfig
expect "pkg-config --modversion" "$version" "$(pkg-config --modversion bertrand)"
# shellcheck disable=SC2046
c++ -O0 $(pkg-config --cflags bertrand) "$example" -o "$work/by_hand" $(pkg-config --libs bertrand)
expect "the same output" "$("$work/by_hand")" "$(cat "$work/by_cmake")"
echo "installed, moved, found by CMake and pkg-config"
