#!/usr/bin/env bash
# How well `prepare sentences` finds the ends of sentences, and how fast: precision, recall and F against sets of English,
# whose sentences are joined to paragraphs first, one a document. The end of a document is not counted. wiki and ewt were looked at
# when the abbreviations were chosen; rest, the documents of Wikipedia after those of wiki, was not.
# usage: bench/sentences.sh DATA [ROUNDS]
#   DATA    a directory with corpus/enwiki (a sentence a line) and ner/uner_ewt (English Web Treebank)
# The speed is that of the whole process on rest, 43.6 MB: the medians over the rounds (3). It has one thread.
set -euo pipefail
cd "$(dirname "$0")/.."
data=${1:?usage: bench/sentences.sh DATA [ROUNDS]} rounds=${2:-3} build=${BUILD:-build}
cmake -S . -B "$build" >/dev/null
cmake --build "$build" --target prepare >/dev/null
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LC_ALL=C

cp "$data/corpus/enwiki/enwiki_train_5mb.txt" "$work/wiki"
awk '/^# newdoc id/ { if (n++) print "" } sub(/^# text = /, "")' "$data/ner/uner_ewt/en_ewt-ud-train.iob2" >"$work/ewt"

joined() { awk 'BEGIN { RS = ""; FS = "\n" } { $1 = $1; print $0 "\n" }' "$1"; }  # a document a line
split() { "$build/bin/prepare" sentences --input "$1" --output "$2" --overwrite 2>"$work/said" || { cat "$work/said" >&2; return 1; }; }
# A place is the number of printable ASCII characters before it, so white space of any kind does not matter.
score() {  # NAME REFERENCE SENTENCES
  awk -v name="$1" 'BEGIN { RS = ""; FS = "\n" }
    { n = 0
      for (i = 1; i < NF; ++i) {
        n += gsub(/[!-~]/, "", $i)
        if (NR == FNR) { wanted += !((FNR, n) in ends); ends[FNR, n] }
        else if (!((FNR, n) in seen)) { ++found; right += (FNR, n) in ends; seen[FNR, n] }
      }
      if (NR == FNR) documents = FNR }
    END {
      if (FNR != documents) { print name ": expected " documents " documents, got " FNR; exit 1 }
      p = right / found; r = right / wanted
      printf "%-5s %6d ends  precision %.4f  recall %.4f  F %.4f\n", name, wanted, p, r, 2 * p * r / (p + r) }' "$2" "$3"
}
xz -dc "$data/corpus/enwiki/enwiki_train.txt.xz" | tail -c "+$(($(wc -c <"$work/wiki") + 1))" |
  awk 'BEGIN { RS = ""; ORS = "\n\n" } NR > 1' >"$work/rest"  # the first is the end of a document
for name in wiki ewt rest; do
  joined "$work/$name" >"$work/$name.joined"
  split "$work/$name.joined" "$work/$name.split"
  score "$name" "$work/$name" "$work/$name.split"
done

TIMEFORMAT='%R %U %S'
for _ in $(seq "$rounds"); do
  { time split "$work/rest.joined" "$work/rest.split"; } 2>&1
done | awk -v bytes="$(wc -c <"$work/rest.joined")" '
  function median(a, n,   i, j, t) { for (i = 1; i < n; ++i) for (j = i + 1; j <= n; ++j) if (a[j] < a[i]) { t = a[i]; a[i] = a[j]; a[j] = t }; return a[int((n + 1) / 2)] }
  { clock[NR] = $1; cpu[NR] = $2 + $3 }
  END { printf "speed %.1f MB/s, %.1f MB a second of CPU time\n", bytes / 1e6 / median(clock, NR), bytes / 1e6 / median(cpu, NR) }'
