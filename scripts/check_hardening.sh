#!/usr/bin/env bash
# Says which programs and libraries lack what packaging/hardened.cmake asks for (the list of checksec): position
# independence, tables of the linker that are read-only from the start, a stack that cannot be run, canaries, and
# checked library calls. usage: scripts/check_hardening.sh FILE…
# Modules that nvcc compiles are not asked for the last two.
set -euo pipefail
[ $# -gt 0 ] || { echo "usage: scripts/check_hardening.sh FILE…" >&2; exit 2; }
status=0
for file in "$@"; do
  missing=()
  dynamic=$(readelf -dW "$file") segments=$(readelf -lW "$file") symbols=$(readelf --dyn-syms -W "$file")
  grep -q 'Elf file type is DYN' <<<"$segments" || missing+=("position independence")
  grep -q GNU_RELRO <<<"$segments" || missing+=("RELRO")
  grep -Eq 'BIND_NOW|FLAGS_1.*NOW' <<<"$dynamic" || missing+=("immediate binding")
  ! grep -Eq 'GNU_STACK.* RWE ' <<<"$segments" || missing+=("a stack that is not executable")
  if ! grep -Eq 'cuda|nccl' <<<"${file##*/}"; then
    grep -q __stack_chk_fail <<<"$symbols" || missing+=("stack canaries")
    # The kernels of a module copy tensors, whose sizes the compiler does not know.
    [[ $file == *.so ]] || grep -q '_chk@' <<<"${symbols//__stack_chk_fail/}" || missing+=("checked library calls")
  fi
  for each in "${missing[@]}"; do
    echo "$file: expected $each, got none; hint: cmake -C packaging/hardened.cmake" >&2
    status=1
  done
done
exit $status
