#compdef bertrand
# Completion for `bertrand`: the commands that have completions of their own.
if ((CURRENT == 2)); then
  local -a commands=(${${(k)functions[(I)_bertrand-*]}#_bertrand-})
  _wanted commands expl command compadd -a commands
elif (($+functions[_bertrand-${words[2]}])); then
  local name=${words[2]}
  shift words
  words[1]=bertrand-$name
  ((CURRENT--))
  _bertrand-$name
fi
