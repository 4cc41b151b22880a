#!/usr/bin/env bash
# Makes the folder .deps for a machine without network: the packages that the build needs beside compiler, CMake and CUDA
# toolkit; if ../shared exists, also the golden data and PyTorch's side of bench/gpu.sh. It is some 30 MB; 60 MB are an error.
# usage: scripts/offline-deps.sh on a Debian 12 machine with network; then copy the source tree with .deps.
set -euo pipefail
cd "$(dirname "$0")/.."
packages=(libeigen3-dev libfmt-dev libfmt9 libcli11-dev libtomlplusplus-dev nlohmann-json3-dev libutf8proc-dev libutf8proc2 zlib1g-dev zlib1g doctest-dev
  libboost1.74-dev libboost-context1.74-dev libboost-context1.74.0 pkgconf pkgconf-bin libpkgconf3)
rm -rf .deps
mkdir -p .deps/archives
(cd .deps/archives && apt-get download -qq "${packages[@]}")
for archive in .deps/archives/*.deb; do dpkg-deb -x "$archive" .deps; done
rm -rf .deps/archives .deps/usr/share/doc .deps/usr/share/man

# Boost has 160 MB of headers. Keep those that the emulation includes.
cd .deps/usr/include
printf '#include <boost/context/%s>\n' fiber.hpp fixedsize_stack.hpp >../../uses.cpp
# shellcheck disable=SC1003  # a backslash, as tr writes it
g++ -std=c++20 -I. -M ../../uses.cpp | tr -s ' \\' '\n' | grep '^boost/' | sort -u >../../needed
echo boost/version.hpp >>../../needed
mkdir ../../kept
xargs -a ../../needed cp --parents -t ../../kept
rm -r boost
mv ../../kept/boost .
cd - >/dev/null
rm -r .deps/uses.cpp .deps/needed .deps/kept

# This link is to /lib, where another system may have another zlib or none: CMake would take the static library, which no
# module can be linked with.
library=$(readlink .deps/usr/lib/*/libz.so)
ln -sfr ".deps$library" .deps/usr/lib/*/libz.so

# A shell sources this to build with .deps and to run what was built.
cat >.deps/environment.sh <<'END'
deps=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
libraries=$deps/usr/lib/$(uname -m)-linux-gnu
export CMAKE_PREFIX_PATH="$deps/usr" CMAKE_LIBRARY_PATH="$libraries"
export PKG_CONFIG_PATH="$libraries/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$deps"
export CPLUS_INCLUDE_PATH="$deps/usr/include${CPLUS_INCLUDE_PATH:+:$CPLUS_INCLUDE_PATH}"  # doctest's target names /usr/include
export LD_LIBRARY_PATH="$libraries:${LD_LIBRARY_PATH:-}" PATH="$PATH:$deps/usr/bin"
END

# The data that tests/cuda_gpu reads: tests/support/paths.h.in takes it from here if there is no ../shared. Folders come whole,
# so that no test finds a part of its data.
if [ -d ../shared ]; then
  mkdir .deps/shared
  (cd ../shared && cp -r --parents -t "$OLDPWD/.deps/shared" peers \
    data/golden_model/{pretraining_gelu,pretraining_gelu_new,trajectory} data/golden_pretraining \
    data/golden_tokenization data/bert_official data/vocab data/glue/MRPC)
  chmod -R u+w .deps/shared
else
  echo "offline-deps.sh: no golden data in .deps: ../shared is not there" >&2
fi
megabytes=$(du -sm .deps | cut -f 1)
echo "$megabytes MB in .deps"
[ "$megabytes" -lt 60 ] || { echo "offline-deps.sh: .deps: expected less than 60 MB" >&2; exit 1; }
