# Questions with four choices out of text with a sentence a line and a blank line between documents: which sentence comes
# next? The others are of the same document. Writes `most` rows as JSON lines, leaving out those of the first `skip` documents.
# usage: awk -v most=3000 -v skip=0 -f bench/continuations.awk TEXT
function quoted(text) { gsub(/"/, "\\\"", text); return "\"" text "\"" }
function ask(   at, place, i, j, right, taken, choices) {
  if (n < 6 || ++documents <= skip) return
  at = 1 + int(rand() * (n - 4))  # its next one is asked for
  right = int(rand() * 4)
  split("", taken)
  taken[at]; taken[at + 1]
  for (i = 0; i < 4; ++i) {
    place = at + 1
    if (i != right) do place = 1 + int(rand() * n); while (place in taken)
    taken[place]
    choices = choices (i ? ", " : "") quoted(line[place])
  }
  print "{\"text\": " quoted(line[at]) ", \"choices\": [" choices "], \"label\": " right "}"
  if (++rows == most) exit
}
BEGIN { srand(1) }
/^$/ { ask(); n = 0; split("", seen); next }
length($0) > 40 && length($0) < 160 && !/[[:cntrl:]\\]/ && !seen[$0]++ { line[++n] = $0 }
