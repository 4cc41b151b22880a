#!/usr/bin/env bash
# Writes what the programs print of themselves: manual pages, completions, docs/cli.md. usage: scripts/manuals.sh PROGRAMS OUTPUT
# PROGRAMS is a folder such as build/bin. OUTPUT gets man1/, bash/, zsh/ and fish/, with the names to install them under, and cli.md.
set -euo pipefail
[ $# -eq 2 ] || { sed -n '2,3s/^# //p' "$0" >&2; exit 2; }
bin=$1 out=$2
completions=$(dirname "$0")/../apps/cli/completions
mkdir -p "$out"/{man1,bash,zsh,fish}
programs=()
for program in prepare pretrain finetune predict extract evaluate export report serve; do
  [ ! -x "$bin/$program" ] || programs+=("$program")  # serve is built where Boost is
done
for program in "${programs[@]}"; do
  name=bertrand-$program
  "$bin/$program" --print man >"$out/man1/$name.1"
  "$bin/$program" --print bash >"$out/bash/$name"
  "$bin/$program" --print zsh >"$out/zsh/_$name"
  "$bin/$program" --print fish >"$out/fish/$name.fish"
done
cp "$completions/bertrand.bash" "$out/bash/bertrand"
cp "$completions/bertrand.zsh" "$out/zsh/_bertrand"
cp "$completions/bertrand.fish" "$out/fish/bertrand.fish"

# The page of `bertrand` lists the others, each with the line of its own page.
{
  sed -n '1s/BERTRAND[^ ]*/BERTRAND/p' "$out/man1/bertrand-prepare.1"
  printf '%s\n' .nh '.ad l' '.SH NAME' 'bertrand \- trains and uses BERT models' '.SH SYNOPSIS' '.B bertrand' '\fICOMMAND\fR [\fIFLAG\fR]...' \
    '.SH DESCRIPTION' '.B bertrand COMMAND' 'is the program' '.BR bertrand\-COMMAND ,' 'whose page has its flags.' '.SH COMMANDS'
  for program in "${programs[@]}"; do
    printf '.TP\n\\fB%s\\fR\n' "$program"
    sed -n 's/^bertrand\\-[a-z]* \\- //p' "$out/man1/bertrand-$program.1"
  done
  echo '.SH SEE ALSO'
  printf '.BR bertrand\\-%s (1),\n' "${programs[@]}" | sed '$s/,$//'
} >"$out/man1/bertrand.1"

{
  cat <<'END'
# Commands

Every flag of every program. An installed program is `bertrand-pretrain` or `bertrand pretrain`; where it was built it is `build/bin/pretrain`.
In a flag, an underscore may stand for a hyphen. [This page](../scripts/manuals.sh) is printed by the programs:
`cmake --build build --target manuals && cp build/manuals/cli.md docs/cli.md` makes it anew.

END
  "$bin/prepare" --help | sed -n '/^Exit codes:/,$p'
  for program in "${programs[@]}"; do
    echo
    "$bin/$program" --print markdown
  done
} >"$out/cli.md"
