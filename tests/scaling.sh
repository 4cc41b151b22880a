#!/usr/bin/env bash
# Runs bench/scaling.sh with the smallest settings that there are: its header, its rows, the column `fits`, which is what the
# plan says, and micro-batches that do not fit. Of speed it says nothing.
# Exits with 77 if it is right, but something is not there.
# usage: tests/scaling.sh BUILD_DIRECTORY
set -euo pipefail
cd "$(dirname "$0")/.."
build=$(realpath "$1")
bench=$build/bin/bench_scaling
[ -x "$bench" ] || { echo "SKIPPED: there is no bench_scaling; hint: cmake --build $build --target bench_scaling"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# What is tested is what was built: a build inside a test would meet others.
printf '#!/bin/sh\n' >"$work/cmake"
# A card is not taken by a build that has no module for it.
[ -e "$build/bin/libbertrand_cuda.so" ] || printf '#!/bin/sh\necho 0\n' >"$work/nvidia-smi"
chmod +x "$work"/*

expect() {  # WHAT FOUND EXPECTED
  [ "$2" = "$3" ] || { printf 'tests/scaling.sh: %s: expected\n%s\ngot\n%s\n' "$1" "$3" "$2"; exit 1; }
}
study() {  # MEMORY: the table
  PATH="$work:$PATH" BUILD=$build CORES=2 SUMS='' MICRO_BATCHES=1 PRECISIONS=f32 LENGTH=8 MEMORY=$1 bench/scaling.sh 1 0.01 tiny
}
cells() { awk -v columns="$1" 'BEGIN { n = split(columns, c, " ") }
  NR > 1 && $1 != "nccl" { line = $c[1]; for (i = 2; i <= n; ++i) line = line " " $c[i]; print line }' "$work/table"; }
rows=$'one 1 - tiny f32 1\none-whole 1 - tiny f32 2\nthreads 2 end tiny f32 1'
mpi=
if [ -e "$build/bin/libbertrand_mpi.so" ] && command -v mpirun >/dev/null; then
  mpi=yes rows+=$'\nmpi 2 end tiny f32 1\nmpi 2 backward tiny f32 1'
fi
fits() { "$bench" fits --model tiny --precision f32 --length 8 --memory 0.5 --threads 2 "$@" | sed 's/.*"fits":\([0-9]*\).*/\1/'; }

study 0.5 >"$work/table"
expect header "$(head -n 1 "$work/table" | tr -s ' ')" \
  "strategy replicas sums model type micro-batch examples/s of one replica replica MB process MB fits"
expect rows "$(cells "1 2 3 4 5 6")" "$rows"
expect "rows without figures" "$(awk 'NR > 1 && !(NF == 11 && $7 > 0 && $8 ~ /^[0-9.]+x$/ && $9 > 0 && $10 > 0 && $11 >= 1)' "$work/table")" ""
expect "the ratio of one-whole to itself" "$(awk '$1 == "one-whole" { print $8 }' "$work/table")" 1.000x
one=$(fits --micro-batches 1)
expect "the column fits" "$(cells "1 11" | grep -v '^mpi')" $'one '"$one"$'\none-whole '"$one"$'\nthreads '"$(fits --micro-batches 2 --replicas 2)"

study 0.01 >"$work/table"
expect "rows of what does not fit" "$(cells "1 2 3 4 5 6")" "$rows"
expect "figures of what does not fit" "$(cells "7 8 9 10 11" | sort -u)" "- - - - 0"
[ -n "$mpi" ] || { echo "SKIPPED: the rows of mpi: there is no MPI"; exit 77; }
