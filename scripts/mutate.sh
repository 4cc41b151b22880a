#!/usr/bin/env bash
# Asks whether the tests see mistakes: changes one place of a source at a time (a comparison, an operator, a constant, a
# condition, a statement that is left out), builds the tests, and says which changes no test noticed. Each is asked of the
# tests of its folder, which notice most changes in seconds, then of those of what is built on it. What none of them
# notices is "missed", and is asked in the end of the tests of the programs, which take minutes.
# usage: scripts/mutate.sh SEED COUNT [PATH…]      PATHs are folders or files; by default all libraries
# The same SEED and sources give the same changes. It works on a copy in build-mutants/; RESULTS-SEED there has a line for
# each change that was tried (caught, missed, survived, not compiled), so that an interrupted run goes on where it was.
# Tests that take three times as long as without a change, and a minute, count as a hang, and a hang as caught.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -ge 2 ] || { sed -n '5p' "$0" | cut -c3- >&2; exit 2; }
seed=$1 count=$2
shift 2
[ $# -gt 0 ] || set -- autograd bert distributed io nn optim serving tensor/cpu training
work=build-mutants results=build-mutants/RESULTS-$seed
mkdir -p "$work/tree"
[ ! -d ../shared ] || ln -sfn "$PWD/../shared" "$work/shared"  # real data, without which many tests are left out
git ls-files | while read -r file; do  # files that are as they were keep their times, so that little is built again
  cmp -s "$file" "$work/tree/$file" || cp --parents "$file" "$work/tree/"
done
touch "$results"

tests_of() {  # FILE: test programs, each with a filter of its source files, until one of them notices
  local folder=${1%/*} own=test_${1%%/*}
  [ -d "tests/$folder" ] && [[ $folder == */* ]] && echo "$own */tests/$folder/*"
  case $1 in
    tensor/*) printf '%s\n' 'test_tensor *' 'test_autograd *' 'test_optim *' 'test_bert *' ;;
    bert/*) echo 'test_bert *' ;;
    apps/*) ;;
    serving/*) echo 'test_serving *' ;;
    *) printf '%s\n' "$own *" 'test_bert *' ;;
  esac
}

# Every possible change as FILE<tab>LINE<tab>KIND. Comments, messages, preprocessor lines and declarations are left alone.
candidates() {
  git ls-files -- "$@" | grep -E '\.(cpp|h)$' | grep -Ev '_emulated|cuda|nccl|amx|\.in$' | while read -r file; do
    awk -v file="$file" '
      function say(kind) { printf "%s\t%d\t%s\n", file, FNR, kind }
      { code = $0; sub(/\/\/.*/, "", code) }
      code ~ /reserve\(|prefetch|shrink_to_fit|__builtin_unreachable/ { next }  # speed alone
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

[ -f "$work/build/build.ninja" ] || cmake -S "$work/tree" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=None -DCMAKE_CXX_FLAGS="-O1 -D_GLIBCXX_ASSERTIONS" \
  -DBERTRAND_CUDA=OFF -DBERTRAND_CPU_KERNELS=native -DBERTRAND_EXAMPLES=OFF >/dev/null

run() {  # SECONDS PROGRAM FILTER: whether its tests pass, without all the memory of the machine
  local tests=(build/bin/"$2" -sf="$3" --abort-after=1)
  [ "$3" != '*' ] || tests=(ctest --test-dir build --no-tests=error -R "^${2#test_}:" -j "$(nproc)" --stop-on-failure)
  (cd "$work" && ulimit -v 16000000 && timeout "$1" "${tests[@]}" >log 2>&1 </dev/null)
}
built() { ninja -C "$work/build" bertrand_cpu "$1" >"$work/log" 2>&1; }
declare -A most_seconds  # of tests that pass as they are
check_sound() {  # PROGRAM FILTER, of sources without a change
  local before=$SECONDS
  built "$1" && before=$SECONDS && run 3600 "$@" ||
    { echo "mutate.sh: expected $1 to pass before anything is changed, got a failure; hint: $work/log" >&2; exit 1; }
  most_seconds[$*]=$((3 * (SECONDS - before) + 60))
}
try() {  # FILE LINE KIND OUTCOME, lines of tests on 3: says the outcome, which is OUTCOME if all of them pass
  local program filter outcome=$4
  mutate "$1" "$2" "$3"
  while [ "$outcome" = "$4" ] && read -r program filter <&3; do
    if [ -z "${most_seconds[$program $filter]:-}" ]; then
      cp "$1" "$work/tree/$1"
      check_sound "$program" "$filter"
      mutate "$1" "$2" "$3"
    fi
    if ! built "$program"; then outcome='not compiled'
    elif ! run "${most_seconds[$program $filter]}" "$program" "$filter"; then outcome=caught
    fi
  done
  echo "$outcome $1:$2: $3" | tee -a "$results"
  [ "$outcome" != survived ] || diff "$1" "$work/tree/$1" | sed -n 's/^[<>]/    &/p' || true
  cp "$1" "$work/tree/$1"
}

candidates "$@" | awk -v seed="$seed" 'BEGIN { srand(seed) } { printf "%.9f\t%s\n", rand(), $0 }' | sort | cut -f2- |
  sed -n "1,${count}p" >"$work/changes"
outcome_of() { grep -F " $1:$2: $3" "$results" | tail -1 | cut -d' ' -f1; }
while IFS=$'\t' read -r file line kind <&4; do
  [ -n "$(outcome_of "$file" "$line" "$kind")" ] || try "$file" "$line" "$kind" missed 3< <(tests_of "$file")
done 4<"$work/changes"
while IFS=$'\t' read -r file line kind <&4; do
  [ "$(outcome_of "$file" "$line" "$kind")" != missed ] || try "$file" "$line" "$kind" survived 3<<<'test_apps *'
done 4<"$work/changes"
awk '{ ++n[$1] } END { tried = n["caught"] + n["survived"]
  printf "%d changes compiled, %d caught (%.0f %%), %d survived\n", tried, n["caught"], tried ? 100 * n["caught"] / tried : 0, n["survived"] }' "$results"
