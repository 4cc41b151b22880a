// A manual as completions of bash, zsh and fish.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "apps/cli/manual.h"

namespace bertrand::cli {
namespace {

/// Text between single quotes, with `escapes` put before these characters in it.
std::string quoted(const std::string& text, const std::string& escaped, const std::string& quote) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += quote;
      continue;
    }
    if (escaped.find(c) != std::string::npos) out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out + "'";
}

/// As bash and zsh quote.
std::string shell(const std::string& text) { return quoted(text, "", "'\\''"); }

std::vector<std::string> names_of(const std::vector<ManualFlag>& flags) {
  std::vector<std::string> names;
  for (const ManualFlag& flag : flags) names.insert(names.end(), flag.names.begin(), flag.names.end());
  return names;
}

std::vector<std::string> names_of(const std::vector<ManualCommand>& commands) {
  std::vector<std::string> names;
  std::ranges::transform(commands, std::back_inserter(names), &ManualCommand::name);
  return names;
}

bool takes_files(const ManualCommand& command) {
  const auto names_path = [](const ManualFlag& flag) { return flag.paths != Paths::none; };
  return std::ranges::any_of(command.arguments, names_path);
}

std::string made_by(const std::string& program, const std::string& shell) {
  return fmt::format("# Completion for {0}, and for `bertrand` before the same command. Made by: {0} --print {1}\n",
                     "bertrand-" + program, shell);
}

// bash

/// What a value may be: words, and <file> or <dir>.
std::string candidates(const ManualFlag& flag) {
  std::vector<std::string> all = flag.words;
  if (flag.paths == Paths::files) all.push_back("<file>");
  if (flag.paths == Paths::directories) all.push_back("<dir>");
  return fmt::format("{}", fmt::join(all, " "));
}

/// The assignments that say what may follow the words of `command`.
std::string bash_case(const ManualCommand& command, const std::string& name) {
  std::string text = fmt::format("    {})\n", shell(name)), values, several;
  for (const ManualFlag& flag : command.flags()) {
    if (flag.value.empty()) continue;
    for (const std::string& one : flag.names) {
      values += fmt::format(" [{}]={}", one, shell(candidates(flag)));
      if (flag.several) several += one + " ";
    }
  }
  text += fmt::format("      flags={}\n", shell(fmt::format("{}", fmt::join(names_of(command.flags()), " "))));
  if (!values.empty()) text += fmt::format("      values=({} )\n", values);
  if (!several.empty()) text += fmt::format("      several={}\n", shell(" " + several));
  if (takes_files(command)) text += "      operand='<file>'\n";
  if (!command.commands.empty())
    text += fmt::format("      commands={}\n", shell(fmt::format("{}", fmt::join(names_of(command.commands), " "))));
  return text + "      ;;\n";
}

/// Bash cuts --flag=value into three words.
constexpr const char* kBash = R"(  esac
  local word=${COMP_WORDS[COMP_CWORD]} flag='' given=0 at
  [[ $word == = ]] && word=''
  for ((at = COMP_CWORD - 1; at > 0; --at)); do
    case ${COMP_WORDS[at]} in
      =) ;;
      --*) flag=${COMP_WORDS[at]}; break ;;
      *) given=1 ;;
    esac
  done
  COMPREPLY=()
  local may_be=''
  if [[ $word == -* ]]; then may_be=$flags
  elif [[ $flag && ${values[$flag]+set} && ($given == 0 || $several == *" $flag "*) ]]; then may_be=${values[$flag]}
  elif [[ $commands ]]; then may_be=$commands
  elif [[ $operand ]]; then may_be=$operand
  else may_be=$flags
  fi
  local words=${may_be/<file>/} path=''
  words=${words/<dir>/}
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
  path=${word//\\/}
  [[ $may_be == *'<file>' ]] && mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "$path")
  [[ $may_be == *'<dir>' ]] && mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -d -- "$path")
  [[ $may_be == *'>' ]] && compopt -o filenames 2>/dev/null
  return 0
}
)";

// zsh

/// Text inside of '…[text]' of an optspec.
std::string zsh_text(const std::string& text) { return quoted(text, "\\[]:", "'\\''"); }

/// Without its quotes.
std::string zsh_part(const std::string& text) {
  const std::string whole = zsh_text(text);
  return whole.substr(1, whole.size() - 2);
}

/// What completes the value.
std::string zsh_action(const ManualFlag& flag) {
  const std::string words = zsh_part(fmt::format("{}", fmt::join(flag.words, " ")));
  const std::string paths = flag.paths == Paths::none ? "" : flag.paths == Paths::files ? "_files" : "_files -/";
  if (words.empty()) return paths.empty() ? " " : paths;
  return paths.empty() ? "(" + words + ")" : fmt::format("{{compadd -- {}; {}}}", words, paths);
}

std::string zsh_flags(const ManualCommand& command, const std::string& indent) {
  std::string text = indent + "flags=(\n", several;
  for (const ManualFlag& flag : command.flags())
    for (const std::string& name : flag.names) {
      const std::string others = flag.several ? "" : fmt::format("({})", fmt::join(flag.names, " "));
      text += fmt::format("{}  '{}{}{}{}[{}]", indent, others, flag.several ? "*" : "", name,
                          flag.value.empty() ? "" : "=", zsh_part(flag.help));
      if (!flag.value.empty()) text += fmt::format(":{}:{}", zsh_part(flag.value), zsh_action(flag));
      text += "'\n";
      if (flag.several) several += fmt::format("{}|", name);
    }
  text += indent + ")\n";
  if (!several.empty()) text += fmt::format("{}several={}\n", indent, shell(several.substr(0, several.size() - 1)));
  if (takes_files(command)) text += indent + "operand=_files\n";
  return text;
}

/// After a flag that takes several values, words are values until the next flag.
constexpr const char* kZsh = R"(_arguments -S : $flags '*: :->rest' && ret=0
if [[ $state == rest ]]; then
  local -i at=$((CURRENT - 1))
  while ((at > 1)) && [[ ${words[at]} != --* ]]; do ((at--)); done
  if [[ -n $several && ${words[at]%%=*} == (${~several}) ]]; then
    _files && ret=0
  elif [[ -n $operand ]]; then
    _files && ret=0
  fi
fi
return ret
)";

// fish

std::string fish(const std::string& text) { return quoted(text, "\\", "\\'"); }

std::string fish_flags(const ManualCommand& command, const std::string& program, const std::string& condition) {
  const std::string beginning = fmt::format("complete -c bertrand-{}{}", program, condition);
  std::string text;
  for (const ManualFlag& flag : command.flags()) {
    std::string names;
    for (const std::string& name : flag.names) {
      names = name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      text += beginning + names;
      if (!flag.value.empty()) text += flag.paths == Paths::files ? " -r -F" : " -x";
      std::string values = fmt::format("{}", fmt::join(flag.words, " "));
      if (flag.paths == Paths::directories) values += "(__fish_complete_directories)";
      if (!values.empty()) text += " -a " + fish(values);
      text += fmt::format(" -d {}\n", fish(flag.help));
    }
  }
  return text;
}

/// Whether a word that is no flag's value may be a file's name.
bool has_file_words(const ManualCommand& command) {
  return takes_files(command) || std::ranges::any_of(command.flags(), &ManualFlag::several);
}

}  // namespace

std::string bash_completion(const Manual& manual) {
  const ManualCommand& program = manual.program;
  std::string text = made_by(program.name, "bash");
  text +=
      fmt::format("_bertrand_{}() {{\n  local flags='' several=' ' operand='' commands='' command=''\n", program.name);
  text += "  local -A values=()\n";
  if (!program.commands.empty())
    text += "  ((COMP_CWORD > 1)) && [[ ${COMP_WORDS[1]} != -* ]] && command=${COMP_WORDS[1]}\n";
  text += "  case $command in\n" + bash_case(program, "");
  for (const ManualCommand& command : program.commands) text += bash_case(command, command.name);
  return text + kBash + fmt::format("complete -F _bertrand_{0} bertrand-{0}", program.name);
}

std::string zsh_completion(const Manual& manual) {
  const ManualCommand& program = manual.program;
  std::string text = fmt::format("#compdef bertrand-{}\n", program.name) + made_by(program.name, "zsh");
  text += "local -a flags\nlocal several operand context state state_descr line\nlocal -i ret=1\ntypeset -A opt_args\n";
  if (program.commands.empty()) return text + zsh_flags(program, "") + kZsh;
  text += "if ((CURRENT == 2)) && [[ ${words[2]} != -* ]]; then\n  local -a commands\n  commands=(\n";
  for (const ManualCommand& command : program.commands)
    text += fmt::format("    {}\n", shell(command.name + ":" + command.summary()));
  text += "  )\n  _describe command commands && ret=0\n  return ret\nfi\ncase ${words[2]} in\n";
  for (const ManualCommand& command : program.commands)
    text +=
        fmt::format("  {})\n{}    shift words\n    ((CURRENT--))\n    ;;\n", command.name, zsh_flags(command, "    "));
  return text + "  *)\n" + zsh_flags(program, "    ") + "    ;;\nesac\n" + kZsh;
}

std::string fish_completion(const Manual& manual) {
  const ManualCommand& program = manual.program;
  std::string text = made_by(program.name, "fish");
  const std::string all = fmt::format("complete -c bertrand-{}", program.name);
  if (program.commands.empty()) {
    if (!has_file_words(program)) text += all + " -f\n";
    text += fish_flags(program, program.name, "");
  } else {
    text += all + " -n __fish_use_subcommand -f\n";
    for (const ManualCommand& command : program.commands)
      text += fmt::format("{} -n __fish_use_subcommand -a {} -d {}\n", all, command.name, fish(command.summary()));
    text += fish_flags(program, program.name, " -n __fish_use_subcommand");
    for (const ManualCommand& command : program.commands) {
      const std::string condition = fmt::format(" -n '__fish_seen_subcommand_from {}'", command.name);
      if (!has_file_words(command)) text += all + condition + " -f\n";
      text += fish_flags(command, program.name, condition);
    }
  }
  text.pop_back();  // the caller ends the last line
  return text;
}

}  // namespace bertrand::cli
