# The small changes of scripts/mutate.sh, each behind the switch mutated(ID) of tests/support/mutated.h (a schema of mutants:
# Untch, Offutt and Harrold, 1993), so that the changed and the unchanged program are the same build.
# awk -v name=FILE -f mutations.awk FILE
#   prints every possible change: FILE<tab>LINE<tab>KIND
# awk -v name=FILE -v chosen=CHANGES -v header=mutated.h -f mutations.awk FILE
#   prints the file with its changes of CHANGES, whose lines are ID<tab>FILE<tab>LINE<tab>KIND
# A change is of an expression or a statement on one line. The kinds are those of Petrović and Ivanković (State of mutation
# testing at Google, 2018): another arithmetic, relational or logical operator, another truth value, a statement left out.
# Comments, preprocessor lines, declarations, and constants are left as they are, and so is what a comment calls "for speed
# alone" or "for memory alone": its own line, or the line after it, or all of the function that begins there.

# The code of a line: as long as the line up to a comment, with _ for each character between quotes.
function code_of(line,   i, c, quote, code) {
  for (i = 1; i <= length(line); ++i) {
    c = substr(line, i, 1)
    if (quote != "") {
      if (c == "\\") { code = code "_"; ++i }
      else if (c == quote) { quote = ""; code = code c; continue }
      code = code "_"
    } else {
      if (substr(line, i, 2) == "//") { sub(/ +$/, "", code); return code }
      if (c == "\"" || (c == "'" && code !~ /[0-9a-fA-F]$/)) quote = c  # but for 1'000
      code = code c
    }
  }
  return code
}

# Where the expression begins that has the operator at `at`, and where it ends; 0 if it does not on this line.
function begin_of(code, at,   i, c, depth) {
  for (i = at; i > 0; --i) {
    c = substr(code, i, 1)
    if (c ~ /[])}]/) ++depth
    else if (c ~ /[[({]/ && depth-- == 0) return i + 1
    if (depth > 0) continue
    if (c ~ /[,;]/ || (c == " " && substr(code, 1, i) ~ /( [-+*\/%|&^]?=|return| \?| :|<<) $/)) return i + 1
  }
  return 0
}
function end_of(code, at,   i, c, depth) {
  for (i = at; i <= length(code); ++i) {
    c = substr(code, i, 1)
    if (c ~ /[[({]/) ++depth
    else if (c ~ /[])}]/ && depth-- == 0) return i - 1
    if (depth == 0 && (c ~ /[,;]/ || substr(code, i, 3) ~ /^ [?:] $/ || substr(code, i, 4) == " << ")) return i - 1
  }
  return 0
}

# The line with the change, or nothing if it can't be made.
function changed(line, kind, id,   code, is, part, at, first, last, expression) {
  code = code_of(line)
  is = "mutated(" id ")"
  if (kind ~ /left out$/) {
    match(line, /^ */)
    return substr(line, 1, RLENGTH) "{ if (!" is ") " substr(line, RLENGTH + 1, length(code) - RLENGTH) " }"
  }
  split(kind, part, " to ")
  if (part[1] ~ /^[a-z]+$/) {
    match(code, "[ (]" part[1] "[;,)]")
    return substr(line, 1, RSTART) "(" is " ? " part[2] " : " part[1] ")" substr(line, RSTART + RLENGTH - 1)
  }
  at = index(code, " " part[1] " ")
  first = begin_of(code, at)
  last = end_of(code, at + length(part[1]) + 2)
  if (!first || !last) return ""
  expression = substr(line, first, last - first + 1)
  return substr(line, 1, first - 1) "(" is " ? (" substr(line, first, at - first) " " part[2] \
    substr(line, at + 1 + length(part[1]), last - at - length(part[1])) ") : (" expression "))" substr(line, last + 1)
}

function say(kind) { if (changed($0, kind, 0) != "") printf "%s\t%d\t%s\n", name, FNR, kind }
function list(   code, last_code) {
  code = code_of($0)
  if (code ~ /^ *$/) {
    if ($0 ~ /for (speed|memory) alone/) awaited = 1
    return
  }
  last_code = before
  before = code
  match(code, /^ */)
  if (awaited && code !~ /[;,}]$/) speed_alone = RLENGTH + 1
  if (awaited || speed_alone || $0 ~ /for (speed|memory) alone/) {
    awaited = 0
    if (RLENGTH < speed_alone && code ~ /^ *}/) speed_alone = 0
    return
  }
  if (code ~ /^ *#|reserve\(|prefetch|shrink_to_fit|__builtin_unreachable|sleep_for/) return
  if (code ~ /^ *(struct|class) [^;]*\{$/) fields_at[++types] = RLENGTH + 2
  if (types && code ~ /^ *};/ && RLENGTH + 2 == fields_at[types]) --types
  if (code ~ /^constexpr auto [A-Za-z]+ = \[\] \{$/) in_table = 1  # which the compiler computes
  if (in_table && code ~ /^}\(\);/) in_table = 0
  if (in_table) return
  # The default of a public field: most are always overwritten.
  if (types && RLENGTH == fields_at[types] && code ~ /^ +[A-Za-z_0-9:<>]+ [a-z_0-9]*[a-z0-9] = [a-z0-9.]+[;,]/) return
  if (code ~ /static_assert|template|using |typename|operator|constexpr|thread_local|virtual|override|enum |^ *case /) return
  if (code ~ /^[ 0-9,]*$/ || code ~ /Failure::bug|^ *check\(/) return  # a table; what only a bug of the program reaches
  if (code ~ / << [0-9]/) return  # a shift, not the end of an expression
  if (code ~ / < /) say("< to <=")
  if (code ~ / <= /) say("<= to <")
  if (code ~ / > /) say("> to >=")
  if (code ~ / >= /) say(">= to >")
  if (code ~ / == /) say("== to !=")
  if (code ~ / != /) say("!= to ==")
  if (code ~ / && /) say("&& to ||")
  if (code ~ / \|\| /) say("|| to &&")
  if (code ~ / \+ / && code !~ /"/) say("+ to -")
  if (code ~ / - /) say("- to +")
  if (code ~ / \* [a-z(]/ && code ~ /[;,)]/) say("* to +")
  if (code ~ /[ (]true[;,)]/) say("true to false")
  if (code ~ /[ (]false[;,)]/) say("false to true")
  if (last_code !~ /[;{}:)]$|else$/) return  # in the middle of a statement
  if (code ~ /^ +if \(.*\) [a-z].*;$/) say("if left out")
  if (code ~ /^ +[a-z_.>()-]+\(.*\);$/ && code !~ /return|delete|CHECK/) say("statement left out")
  if (code ~ /^ +[a-z_.\[\]>-]+ [-+*\/]?= .*;$/) say("assignment left out")
}

BEGIN {
  while (chosen && (getline change < chosen) > 0) {
    split(change, part, "\t")
    if (part[2] == name) { id[part[3]] = part[1]; kind[part[3]] = part[4] }
  }
  if (chosen) printf "#include \"%s\"\n#line 1\n", header
}
!chosen { list(); next }
FNR in id { print changed($0, kind[FNR], id[FNR]); next }
{ print }
