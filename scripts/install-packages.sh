#!/usr/bin/env bash
# Installs the Debian packages named (default: what the build needs) that are not there yet. Asks for root through sudo.
set -euo pipefail
packages=("$@")
if [ ${#packages[@]} -eq 0 ]; then
  packages=(g++ cmake ninja-build pkg-config libeigen3-dev libfmt-dev libcli11-dev libtomlplusplus-dev nlohmann-json3-dev libutf8proc-dev zlib1g-dev doctest-dev libboost-context-dev
            libicu-dev libopenmpi-dev openmpi-bin)
fi
missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0
echo "installing: ${missing[*]}"
root=""
[ "$(id -u)" -eq 0 ] || root=sudo
export DEBIAN_FRONTEND=noninteractive
$root apt-get update -qq
$root apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
