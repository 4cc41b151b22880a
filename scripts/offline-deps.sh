#!/usr/bin/env bash
# Gathers what the build needs beyond compiler, CMake and CUDA toolkit into .deps (some 20 MB), for a machine without network.
# usage: scripts/offline-deps.sh, on a Debian 12 machine with it; then bring the source tree with .deps along.
set -euo pipefail
cd "$(dirname "$0")/.."
packages=(libeigen3-dev libfmt-dev libfmt9 libcli11-dev nlohmann-json3-dev libutf8proc-dev libutf8proc2 zlib1g-dev zlib1g doctest-dev
  libboost1.74-dev libboost-context1.74-dev libboost-context1.74.0 pkgconf pkgconf-bin libpkgconf3)
rm -rf .deps
mkdir -p .deps/archives
(cd .deps/archives && apt-get download -qq "${packages[@]}")
for archive in .deps/archives/*.deb; do dpkg-deb -x "$archive" .deps; done
rm -rf .deps/archives .deps/usr/share/doc .deps/usr/share/man

# Of Boost's 160 MB of headers only those that the emulation reads.
cd .deps/usr/include
printf '#include <boost/context/%s>\n' fiber.hpp fixedsize_stack.hpp >../../uses.cpp
g++ -std=c++20 -I. -M ../../uses.cpp | tr -s ' \\' '\n' | grep '^boost/' | sort -u >../../needed
echo boost/version.hpp >>../../needed
mkdir ../../kept
xargs -a ../../needed cp --parents -t ../../kept
rm -r boost
mv ../../kept/boost .
cd - >/dev/null
rm -r .deps/uses.cpp .deps/needed .deps/kept
du -sh .deps
