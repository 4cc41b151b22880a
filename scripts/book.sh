#!/usr/bin/env bash
# Makes HTML of the book, docs/book, in build/book/html. It opens from the disk and needs no network.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v mkdocs >/dev/null || { echo 'book.sh: expected mkdocs, found none; hint: apt-get install mkdocs' >&2; exit 1; }
pages=build/book/pages
rm -rf build/book
mkdir -p $pages
cp -r docs/book/*.md docs/book/*.svg docs/book/book.css docs/book/code $pages/
# What lies outside the book comes along under files/, as text that a browser shows.
grep -ohP '\]\(\K\.\./\.\./[^)#]+' docs/book/*.md | sort -u | while read -r link; do
  path=${link#../../}
  [ -d "$path" ] && continue
  mkdir -p "$pages/files/$(dirname "$path")"
  cp "$path" "$pages/files/$path.txt"
done
sed -i -E 's#\]\(\.\./\.\./([^)#]*[^)#/])\)#](files/\1.txt)#g' $pages/*.md
for file in "$pages"/code/*; do mv "$file" "$file.txt"; done
sed -i -E 's#\]\((code/[^)#]+)\)#](\1.txt)#g' $pages/*.md
mkdocs build --quiet --strict
echo "build/book/html/index.html"
