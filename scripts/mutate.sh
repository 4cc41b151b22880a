#!/usr/bin/env bash
# Asks whether the tests see mistakes: changes small things of the sources (a comparison, an operator, a constant, a
# statement that is left out; scripts/mutations.awk), one at a time, and says which changes no test notices.
# usage: scripts/mutate.sh SEED COUNT [PATH…]      PATHs are folders or files; by default all libraries but CUDA's, and the programs
# The same SEED and sources give the same changes. All are compiled into one build of a copy, each behind a switch. Then each
# test runs once without a change, which says what changes it reaches. Then each change runs the tests that reach it, those
# of its library first and of them the shortest, until one fails: first what takes two minutes in all, in the end the others too.
# A file in build-mutants/ has a line for each change (caught and by which test, survived, unreached, not compiled), so that
# an interrupted run goes on where it was; QUICK=1 leaves out the longer tests, JOBS is how many run at once. Tests that take
# three times as long as without a change, and 20 s, count as a hang, and a hang as caught.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -ge 2 ] || { sed -n '4p' "$0" | cut -c3- >&2; exit 2; }
seed=$1 count=$2
shift 2
[ $# -gt 0 ] || set -- apps autograd bert distributed io nn optim serving tensor training
jobs=${JOBS:-$(nproc)} work=$PWD/build-mutants
sources() { git ls-files --cached --others --exclude-standard; }
same=$({ echo "$seed $count $*"; sources | xargs -d '\n' sha1sum; } | sha1sum | cut -c-12)
results=$work/$same/RESULTS changes=$work/$same/changes reached=$work/$same/reached
export work results reached
mkdir -p "$work/tree" "$reached"
[ ! -d ../shared ] || ln -sfn "$PWD/../shared" "$work/shared"  # real data, without which many tests are left out
touch "$results"
echo "results: $results"

mutations() { awk -v name="$1" -v chosen="${2:-}" -v header="$work/tree/tests/support/mutated.h" -f scripts/mutations.awk "$1"; }  # FILE [CHANGES]
# ID<tab>FILE<tab>LINE<tab>KIND of those that are asked, at most one a line
[ -s "$changes" ] || git ls-files -- "$@" | grep -E '\.(cpp|h)$' | grep -Ev '_emulated|cuda|nccl|amx|\.in$' |
  while read -r file; do mutations "$file"; done |
  awk -v seed="$seed" 'BEGIN { srand(seed) } { printf "%.9f\t%s\n", rand(), $0 }' | sort | cut -f2- |
  awk -F '\t' -v count="$count" -v OFS='\t' '!seen[$1, $2]++ && n < count { print ++n, $0 }' >"$changes"

# Files that are as they were keep their times, so that little is built again.
copy_tree() {
  local file
  (cd "$work/tree" && find . -type f -printf '%P\n') | { grep -vxFf <(sources) || true; } |
    sed "s|^|$work/tree/|" | xargs -r -d '\n' rm
  sources | while read -r file; do
    if grep -qxF "$file" <(cut -f2 "$changes"); then mutations "$file" "$changes" >"$work/now"; else cp "$file" "$work/now"; fi
    mkdir -p "$work/tree/$(dirname "$file")"
    cmp -s "$work/now" "$work/tree/$file" || cat "$work/now" >"$work/tree/$file"
    [ ! -x "$file" ] || chmod +x "$work/tree/$file"
  done
}
# Leaves out the changes of the lines that the compiler's errors name, and of the lines before (an else without its if), or
# else those of all its messages, or else of their files.
leave_out_what_does_not_compile() {
  local named=$work/named message part
  for part in line file; do
    for message in ': error:' ''; do
      grep -e "$message" "$work/build.log" | grep -oE "(tree|include/[a-z_]+)/[A-Za-z0-9_./-]*:[0-9]+:" | sed -E 's#^(tree|include/[a-z_]+)/##; s/:$//' |
        if [ $part = line ]; then cat; else sed 's/:.*//'; fi | sort -u >"$named" || true
      awk -F '\t' -v named="$named" -v part=$part 'BEGIN { while ((getline line < named) > 0) { at[line]; split(line, place, ":"); at[place[1] ":" place[2] - 1] } }
        (part == "line" ? $2 ":" $3 : $2) in at' "$changes" >"$work/out"
      [ ! -s "$work/out" ] || break 2
    done
  done
  [ -s "$work/out" ] || { echo "mutate.sh: expected the sources to compile without a change, got errors; hint: $work/build.log" >&2; exit 1; }
  awk -F '\t' '{ print "not compiled " $2 ":" $3 ": " $4 }' "$work/out" | tee -a "$results"
  grep -vxFf "$work/out" "$changes" >"$work/now" || true
  cp "$work/now" "$changes"
}
if [ "$(cat "$work/built" 2>/dev/null)" != "$same" ]; then
  rm -f "$work/built"
  copy_tree
  # That a function ends without its result is an error: the compiler would take it for impossible, and leave the change out.
  cmake -S "$work/tree" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=None -DBERTRAND_CUDA=OFF -DBERTRAND_CPU_KERNELS=native -DBERTRAND_EXAMPLES=OFF \
    -DCMAKE_UNITY_BUILD=ON -DCMAKE_CXX_FLAGS="-O1 -Werror=return-type -D_GLIBCXX_ASSERTIONS" >/dev/null
  until ninja -C "$work/build" -k 0 all bertrand_backends >"$work/build.log" 2>&1; do
    leave_out_what_does_not_compile
    copy_tree
  done
  echo "$same" >"$work/built"
fi

# What each test reaches, in a file with its number; MILLISECONDS NUMBER of those that pass as the sources are, in times.
# The limit of processor time is for what a test has started and a timeout leaves behind.
run() {  # SECONDS NUMBER,…: whether these tests pass, without all the memory of the machine; what they leave behind is removed
  local files status=0 before host script
  before=$(ip netns list 2>/dev/null)
  files=$(mktemp -d "$work/tmp.XXXXXX")
  (ulimit -v 16000000 -t $(($(nproc) * $1)) && TMPDIR=$files timeout -k 5 "$1" ctest --test-dir "$work/build" --stop-on-failure -I "0,0,0,$2" </dev/null 2>&1) || status=$?
  rm -rf "$files"
  for host in $(ip netns list 2>/dev/null | grep -vxF -e "$before" | grep -oE '^bertrand-[0-9]+-[ab]'); do  # of two on this machine, if who made them has ended
    script=${host#bertrand-}
    [ -e "/proc/${script%-*}" ] || ip netns del "$host"
  done
  return $status
}
reach() {  # NUMBER
  local before=${EPOCHREALTIME/./}
  if MUTANTS_REACHED=$reached/$1 run 900 "$1" >/dev/null; then
    echo "$(((${EPOCHREALTIME/./} - before) / 1000)) $1" >>"$reached/times"
  else
    echo "mutate.sh: expected test $1 to pass before anything is changed, got a failure: it is not asked" >&2
  fi
  touch "$reached/$1"
}
try() {  # OUTCOME if all tests pass, CHANGE, groups of tests that are asked one after another as MILLISECONDS:NUMBER,…
  local id file line kind group said outcome=$1
  IFS=$'\t' read -r id file line kind <<<"$2"
  for group in $3; do
    said=$(MUTANT=$id run $((3 * ${group%:*} / 1000 + 20)) "${group#*:}") && continue
    outcome=caught
    break
  done
  said=$(sed -n 's/^\t *[0-9]* - \(.*\) (.*)$/\1/p' <<<"${said:-}" | head -1)
  [ "$outcome" != caught ] || said=", by ${said:-a hang}"
  echo "$outcome $file:$line: $kind$said" | tee -a "$results"
}
export -f run reach try

# shellcheck disable=SC2016  # the other shell expands it
ctest --test-dir "$work/build" -N -E '^(tree|install):' | sed -n 's/^ *Test *#\([0-9]*\):.*/\1/p' |
  while read -r number; do [ -f "$reached/$number" ] || echo "$number"; done | xargs -r -n 1 -P "$jobs" bash -c 'reach "$1"' _

# OUTCOME, CHANGE and GROUPS for each change: of its tests that take up to two minutes in all, or of the others.
schedule() {  # early|late
  ctest --test-dir "$work/build" -N | sed -n 's/^ *Test *#\([0-9]*\): \([a-z_]*\):.*/\1 \2/p' >"$work/library"
  for whose in own others; do sort -n "$reached/times" | sed "s/$/ $whose/"; done |
    awk -v part="$1" -v reached="$reached" -v changes="$changes" -v library="$work/library" '
    BEGIN {
      while ((getline line < library) > 0) { split(line, field, " "); library_of[field[1]] = field[2] }
      while ((getline change < changes) > 0) { split(change, field, "\t"); sub("/.*", "", field[2]); folder[field[1]] = field[2] }
      close(changes) }
    { file = reached "/" $2
      while ((getline id < file) > 0) {
        # Others do not come again, nor does one that several of its processes reached.
        if ((library_of[$2] == folder[id]) != ($3 == "own") || (id, $2) in known) continue
        known[id, $2]
        sum[id] += $1
        group = sum[id] < 2000 ? 1 : sum[id] < 10000 ? 2 : sum[id] < 40000 ? 3 : sum[id] < 120000 ? 4 : 5
        time[id, group] += $1
        tests[id, group] = tests[id, group] "," $2
      }
      close(file) }
    END { while ((getline change < changes) > 0) {
        split(change, field, "\t"); id = field[1]; groups = ""
        for (group = part == "early" ? 1 : 5; group <= (part == "early" ? 4 : 5); ++group)
          if ((id, group) in tests) groups = groups " " time[id, group] ":" substr(tests[id, group], 2)
        if (groups == "" && part == "late") continue
        print groups == "" ? "unreached" : part == "early" && (id, 5) in tests ? "missed" : "survived"; print change; print groups
      } }'
}
outcome_of() { grep -F " $1: $2" "$results" | tail -n 1 | cut -d ' ' -f 1; }  # FILE:LINE KIND
ask() {  # early|late, the outcome so far
  local outcome change groups file line kind
  while read -r outcome && IFS= read -r change && IFS= read -r groups; do
    IFS=$'\t' read -r _ file line kind <<<"$change"
    [ "$(outcome_of "$file:$line" "$kind")" != "$2" ] || printf '%s\n' "$outcome" "$change" "$groups"
  done < <(schedule "$1") | xargs -r -d '\n' -n 3 -P "$jobs" bash -c 'try "$@"' _
}
ask early ''
[ -n "${QUICK:-}" ] || ask late missed
awk '{ change = $0; sub(/^[a-z]* /, "", change); sub(/, by .*/, "", change); last[change] = $1 }
  END { for (change in last) ++n[last[change]]
  tried = n["caught"] + n["missed"] + n["survived"] + n["unreached"]
  printf "%d changes compiled, %d caught (%.1f %%), %d survived, %d missed by the shorter tests, %d reached by no test\n",
    tried, n["caught"], tried ? 100 * n["caught"] / tried : 0, n["survived"], n["missed"], n["unreached"] }' "$results"
