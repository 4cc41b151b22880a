#!/usr/bin/env bash
# Whether .deps is all that a build without network needs: makes it in a copy of the sources, hides the packages that it stands for,
# and builds there what uses each of them. usage: tests/offline.sh, as root. It takes a minute.
set -euo pipefail
cd "$(dirname "$0")/.."
unshare --mount true 2>/dev/null || { echo "offline.sh: SKIPPED: files can be hidden by root alone"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git ls-files -z | xargs -0 cp --parents -t "$work"
cd "$work"
scripts/offline-deps.sh

# Headers, and what CMake and pkg-config ask for; not libraries, which the programs of this machine load. What .deps has not, a
# machine without network need not have either.
{ dpkg-query -W -f '${db:Status-Status} ${Package}\n' 'libboost*-dev' libopenmpi-dev libicu-dev libeigen3-dev libfmt-dev libcli11-dev \
  libtomlplusplus-dev nlohmann-json3-dev libutf8proc-dev zlib1g-dev doctest-dev 2>/dev/null || true; } | sed -n 's/^installed //p' |
  xargs dpkg -L | grep -E '^/usr/include/[^/]+$|/cmake/[^/]+$|\.pc$' | grep -v -- '-linux-gnu$' | sort -u >hidden
unshare --mount bash -euo pipefail -c '
  mkdir nothing
  while read -r place; do
    if [ -d "$place" ]; then mount --bind nothing "$place"; elif [ -f "$place" ]; then mount --bind /dev/null "$(readlink -f "$place")"; fi
  done <hidden
  . .deps/environment.sh
  cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=None -DBERTRAND_CUDA=OFF -DBERTRAND_CPU_KERNELS=native >log
  cmake --build build --target bertrand_test_main bertrand_apps_cli >log || { tail -n 40 log; exit 1; }'
