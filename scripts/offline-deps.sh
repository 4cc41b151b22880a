#!/usr/bin/env bash
# Gathers what the build needs beyond compiler, CMake and CUDA toolkit into .deps, for a machine without network.
# usage: scripts/offline-deps.sh, on a Debian machine with it; then bring the source tree with .deps along.
set -euo pipefail
cd "$(dirname "$0")/.."
packages=(libeigen3-dev libfmt-dev libfmt9 libcli11-dev nlohmann-json3-dev libutf8proc-dev libutf8proc2 zlib1g-dev zlib1g doctest-dev
  libboost1.74-dev libboost-context1.74-dev libboost-context1.74.0)
rm -rf .deps
mkdir -p .deps/archives
(cd .deps/archives && apt-get download -qq "${packages[@]}")
for archive in .deps/archives/*.deb; do dpkg-deb -x "$archive" .deps; done
rm -rf .deps/archives .deps/usr/share/doc
du -sh .deps
