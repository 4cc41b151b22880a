#!/usr/bin/env bash
# Checks the source tree without a build. usage: tests/check_tree.sh paths|lines
#   paths  every path of the repository that a document, a comment or a message names exists, and so does every link
#   lines  no source file has more than 400 lines
set -euo pipefail
cd "$(dirname "$0")/.."
most=400
found=0
complain() { echo "$1"; found=1; }
# What git would hold, in a tree without git too.
mapfile -t files < <(find . -type d \( -name '.?*' -o -name 'build*' -o -name demo \) -prune -o -type f -print | sed 's|^\./||' | LC_ALL=C sort)
of_kind() { printf '%s\n' "${files[@]}" | grep -E "\.($1)$"; }

# exists NAME: a name may have * and {a,b}; the ending may be left out (tensor/ops)
exists() {
  local each
  for each in $(eval "echo $1"); do [ -e "$each" ] || compgen -G "$each.*" >/dev/null || return 1; done
}
check_paths() {
  local folders file line path seen=0 links=0
  folders=$(printf '%s\n' "${files[@]}" | sed -n 's|/.*||p' | sort -u | paste -sd '|')
  # "examples/s" is a rate; what follows #include is the compiler's; variables of TensorFlow are named bert/encoder/….
  while IFS=: read -r file line path; do
    seen=$((seen + 1))
    [[ $path == */s ]] || exists "$path" || complain "$file:$line: expected a path of the repository, got $path"
  done < <(of_kind 'md|h|cpp|cu|sh|txt|cmake|in' | xargs grep -noP "^#include.*(*SKIP)(*FAIL)|bert/(embeddings|encoder|pooler)\b.*?(*SKIP)(*FAIL)|(?<![A-Za-z0-9_./<>{}-])($folders)/[A-Za-z0-9_./*{},-]*[A-Za-z0-9_*}]" /dev/null)
  while IFS=: read -r file line path; do
    links=$((links + 1))
    [ -e "$(dirname "$file")/$path" ] || complain "$file:$line: expected a link to a file of the repository, got $path"
  done < <(of_kind md | xargs grep -noP '\]\(\K(?!https?:|#)[^)# ]+(?=[)#])' /dev/null)
  ((seen > 0 && links > 0)) || complain "expected paths and links, found $seen and $links: grep has failed"
}
check_lines() {
  local file lines
  while read -r file; do
    lines=$(wc -l <"$file")
    ((lines <= most)) || complain "$file: expected at most $most lines, got $lines; hint: split it"
  done < <(of_kind 'h|cpp|cu|sh|cmake|py')
}

case ${1:-} in
  paths) check_paths ;;
  lines) check_lines ;;
  *) echo 'usage: tests/check_tree.sh paths|lines' >&2; exit 2 ;;
esac
exit $found
