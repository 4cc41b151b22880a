# Completion for `bertrand`: the commands whose completions lie beside this file, each with its own.
_bertrand_folder=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")
_bertrand() {
  local file commands='' name=${COMP_WORDS[1]-}
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    for file in "$_bertrand_folder"/bertrand-*; do commands+=" ${file##*/bertrand-}"; done
    mapfile -t COMPREPLY < <(compgen -W "$commands" -- "$name")
    return
  fi
  file=$_bertrand_folder/bertrand-$name
  [[ $name =~ ^[a-z]+$ && -r $file ]] || return
  declare -F "_bertrand_$name" >/dev/null || . "$file"
  local -a COMP_WORDS=("bertrand-$name" "${COMP_WORDS[@]:2}")
  local COMP_CWORD=$((COMP_CWORD - 1))
  "_bertrand_$name"
}
complete -F _bertrand bertrand
