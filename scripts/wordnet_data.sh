#!/usr/bin/env bash
# Makes the demo's texts of WordNet's glosses (Debian package wordnet-base). usage: wordnet_data.sh OUTPUT_DIRECTORY
#   text.txt                free text: each definition and each example sentence is a line; a blank line ends a document
#   train.tsv, eval.tsv     a definition and its lexicographer's class (noun.animal, verb.motion, …: 45 in all)
# Definitions in eval.tsv are left out of text.txt.
set -euo pipefail
out=${1:?usage: wordnet_data.sh OUTPUT_DIRECTORY}
mkdir -p "$out"
awk -v out="$out" '
  BEGIN {
    split("adj.all adj.pert adv.all noun.Tops noun.act noun.animal noun.artifact noun.attribute noun.body noun.cognition " \
          "noun.communication noun.event noun.feeling noun.food noun.group noun.location noun.motive noun.object noun.person " \
          "noun.phenomenon noun.plant noun.possession noun.process noun.quantity noun.relation noun.shape noun.state " \
          "noun.substance noun.time verb.body verb.change verb.cognition verb.communication verb.competition verb.consumption " \
          "verb.contact verb.creation verb.emotion verb.motion verb.perception verb.possession verb.social verb.stative " \
          "verb.weather adj.ppl", names, " ")
    print "definition\tclass" > (out "/train.tsv")
    print "definition\tclass" > (out "/eval.tsv")
  }
  /^[0-9]/ {
    split($0, halves, / \| /)
    gloss = halves[2]; gsub(/[ \t]+$/, "", gloss); gsub(/\t/, " ", gloss)
    parts = split(gloss, part, /; "/)           # the definition, then quoted examples
    definition = part[1]
    if (definition == "" || definition in seen) next
    seen[definition] = 1
    class = names[$2 + 1]
    turn = ++count % 25
    if (turn == 0) { print definition "\t" class > (out "/eval.tsv"); next }
    if (turn == 12) print definition "\t" class > (out "/train.tsv")
    print definition > (out "/text.txt")
    for (i = 2; i <= parts; ++i) { sub(/"[^"]*$/, "", part[i]); if (part[i] != "") print part[i] > (out "/text.txt") }
    if (++in_document % 6 == 0) print "" > (out "/text.txt")
  }
' /usr/share/wordnet/data.noun /usr/share/wordnet/data.verb /usr/share/wordnet/data.adj /usr/share/wordnet/data.adv
