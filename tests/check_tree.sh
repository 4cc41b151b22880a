#!/usr/bin/env bash
# Checks the source tree itself, without a build. usage: tests/check_tree.sh paths|lines
#   paths  every path of the repository that a document, a comment or a message names exists
#   lines  no source file has more than 400 lines, except the files below, which may not grow
set -euo pipefail
cd "$(dirname "$0")/.."
declare -A longest=(
  [distributed/mpi/mpi_collective.cpp]=390
)
mapfile -t files < <(find . -type d \( -name '.?*' -o -name 'build*' \) -prune -o -type f -print | sed 's|^\./||' | LC_ALL=C sort)
folders=$(printf '%s\n' "${files[@]}" | sed -n 's|/.*||p' | sort -u | paste -sd '|')

paths() {
  local pattern="(?<![A-Za-z0-9_./<>{}-])($folders)/[A-Za-z0-9_./*{},-]*[A-Za-z0-9_*}]" file line path found=0
  while IFS=: read -r file line path; do
    # shellcheck disable=SC2086  # names with * and {}
    eval "compgen -G $path" >/dev/null 2>&1 && continue
    echo "$file:$line: expected a path of the repository, got $path"
    found=1
  done < <(printf '%s\n' "${files[@]}" | grep -E '\.(md|h|cpp|cu|sh|txt|cmake|in)$' | xargs grep -noP "$pattern" /dev/null)
  return $found
}
paths
