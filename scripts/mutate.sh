#!/usr/bin/env bash
# Asks whether the tests see mistakes: changes one place of a source at a time (a comparison, an operator, a constant, a
# condition, a statement that is left out), builds the tests of that folder, and says which changes no test noticed.
# usage: scripts/mutate.sh SEED COUNT [PATH…]      PATHs are folders or files; by default all libraries
# The same SEED and sources give the same changes. It works on a copy in build-mutants/; RESULTS there has a line for each
# change that was tried (caught, survived, not compiled), so that an interrupted run goes on where it was.
# Environment: SECONDS_EACH, the most for the tests of one change (300). A hang counts as caught.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -ge 2 ] || { sed -n '4p' "$0" | cut -c3- >&2; exit 2; }
seed=$1 count=$2
shift 2
[ $# -gt 0 ] || set -- autograd bert distributed io nn optim serving tensor/cpu training
work=build-mutants results=build-mutants/RESULTS-$seed
mkdir -p "$work"
mkdir -p "$work/tree"
git ls-files | while read -r file; do  # files that are as they were keep their times, so that little is built again
  cmp -s "$file" "$work/tree/$file" || cp --parents "$file" "$work/tree/"
done
touch "$results"

tests_of() {  # FILE: the test programs that should notice
  case $1 in
    tensor/*) echo test_tensor test_autograd ;;
    nn/*) echo test_nn test_bert ;;
    bert/*) echo test_bert ;;
    apps/*) echo test_apps ;;
    *) echo "test_${1%%/*}" ;;
  esac
}

# Every possible change as FILE<tab>LINE<tab>KIND. Comments, messages, preprocessor lines and declarations are left alone.
candidates() {
  git ls-files -- "$@" | grep -E '\.(cpp|h)$' | grep -Ev '_emulated|cuda|nccl|amx|\.in$' | while read -r file; do
    awk -v file="$file" '
      function say(kind) { printf "%s\t%d\t%s\n", file, FNR, kind }
      { code = $0; sub(/\/\/.*/, "", code) }
      code ~ /^ *#/ || code ~ /"/ || code ~ /static_assert|template|using |typename|operator|#include/ { next }
      code ~ / < / && code !~ /<</ { say("< to <=") }
      code ~ / <= / { say("<= to <") }
      code ~ / > / { say("> to >=") }
      code ~ / >= / { say(">= to >") }
      code ~ / == / { say("== to !=") }
      code ~ / != / { say("!= to ==") }
      code ~ / && / { say("&& to ||") }
      code ~ / \|\| / { say("|| to &&") }
      code ~ / \+ / { say("+ to -") }
      code ~ / - / { say("- to +") }
      code ~ / \* [a-z(]/ && code ~ /[;,)]/ && code !~ /const [A-Za-z:<>]+\* / { say("* to +") }
      code ~ /[ (]0[;,)]/ { say("0 to 1") }
      code ~ /[ (]1[;,)]/ { say("1 to 2") }
      code ~ /[ (]true[;,)]/ { say("true to false") }
      code ~ /[ (]false[;,)]/ { say("false to true") }
      code ~ /^ +if \(.*\) [a-z].*;$/ { say("never if") }
      code ~ /^ +[a-z_.>()-]+\(.*\);$/ && code !~ /return|delete|CHECK/ { say("statement left out") }
      code ~ /^ +[a-z_.\[\]>-]+ [-+*\/]?= .*;$/ { say("assignment left out") }
    ' "$file"
  done
}

mutate() {  # FILE LINE KIND, in the copy
  awk -v line="$2" -v kind="$3" '
    FNR != line { print; next }
    kind ~ / to / { split(kind, part, " to "); from = part[1]; to = part[2]
      if (from ~ /^[a-z0-9]+$/) { match($0, "[ (]" from "[;,)]"); $0 = substr($0, 1, RSTART) to substr($0, RSTART + RLENGTH - 1) }
      else { at = index($0, " " from " "); $0 = substr($0, 1, at) to substr($0, at + 1 + length(from)) }
      print; next }
    kind == "never if" { sub(/if \(/, "if (false \\&\\& "); print; next }
    { match($0, /^ */); print substr($0, 1, RLENGTH) ";" }
  ' "$1" >"$work/tree/$1"
}

[ -f "$work/build/build.ninja" ] || cmake -S "$work/tree" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=None -DCMAKE_CXX_FLAGS="-O1" \
  -DBERTRAND_CUDA=OFF -DBERTRAND_CPU_KERNELS=native -DBERTRAND_EXAMPLES=OFF >/dev/null

run() {  # PROGRAM: whether its tests pass, without all the memory of the machine
  (cd "$work" && ulimit -v 16000000 && timeout "${SECONDS_EACH:-300}" build/bin/"$1" >log 2>&1 </dev/null)
}
declare -A sound  # programs that pass as they are
check_sound() {
  [ -z "${sound[$1]:-}" ] || return 0
  ninja -C "$work/build" bertrand_cpu "$1" >"$work/log" 2>&1 && run "$1" ||
    { echo "mutate.sh: expected $1 to pass before anything is changed, got a failure; hint: $work/log" >&2; exit 1; }
  sound[$1]=yes
}

candidates "$@" | awk -v seed="$seed" 'BEGIN { srand(seed) } { printf "%.9f\t%s\n", rand(), $0 }' | sort | cut -f2- | sed -n "1,${count}p" | while IFS=$'\t' read -r file line kind; do
  ! grep -qF "$file:$line: $kind" "$results" || continue
  read -ra programs <<<"$(tests_of "$file")"
  for program in "${programs[@]}"; do check_sound "$program"; done
  mutate "$file" "$line" "$kind"
  outcome=survived
  if ! ninja -C "$work/build" bertrand_cpu "${programs[@]}" >"$work/log" 2>&1; then
    outcome='not compiled'
  else
    for program in "${programs[@]}"; do
      run "$program" || { outcome=caught; break; }
    done
  fi
  echo "$outcome $file:$line: $kind" | tee -a "$results"
  [ "$outcome" != survived ] || diff "$file" "$work/tree/$file" | sed -n 's/^[<>]/    &/p' || true
  cp "$file" "$work/tree/$file"
done
awk '{ ++n[$1] } END { tried = n["caught"] + n["survived"]
  printf "%d changes compiled, %d caught (%.0f %%), %d survived\n", tried, n["caught"], tried ? 100 * n["caught"] / tried : 0, n["survived"] }' "$results"
