// A manual as a page of man and as Markdown.
#include <fmt/format.h>

#include <algorithm>

#include "apps/cli/manual.h"
#include "io/split.h"
#include "io/version.h"

namespace bertrand::cli {
namespace {

std::string capital(std::string text) {
  if (!text.empty() && 'a' <= text[0] && text[0] <= 'z') text[0] += 'A' - 'a';
  return text;
}

/// --shuffle, --no-shuffle; --output DIR
std::string heading_of(const ManualFlag& flag) {
  std::string text = fmt::format("{}", fmt::join(flag.names, ", "));
  if (!flag.value.empty()) text += " " + flag.value;
  return flag.several ? text + " ..." : text;
}

std::string help_of(const ManualFlag& flag) { return flag.required ? flag.help + " (needed)" : flag.help; }

/// What must be given, and that more may be: "--input FILE ... [FLAG]...".
std::string usage_of(const ManualCommand& command) {
  std::string text;
  for (const ManualFlag& flag : command.flags())
    if (flag.required) text += heading_of(flag) + " ";
  text += command.commands.empty() ? "[FLAG]..." : "COMMAND [FLAG]...";
  for (const ManualFlag& argument : command.arguments) {
    const std::string name = heading_of(argument);
    text += argument.required ? " " + name : " [" + name + "]";
  }
  return text;
}

/// Without the flags that stand at its program already.
std::vector<ManualSection> own_sections(const ManualCommand& command) {
  std::vector<ManualSection> sections = command.sections;
  std::erase_if(sections, [](const ManualSection& section) { return section.is_general; });
  return sections;
}

// man

/// Text that roff prints as it is, on one line. Terminals of the locale C have no ….
std::string roff(std::string text) {
  constexpr std::string_view kEllipsis = "…";
  for (std::size_t at = 0; (at = text.find(kEllipsis, at)) != std::string::npos;)
    text.replace(at, kEllipsis.size(), "...");
  std::string out;
  if (text.starts_with('.') || text.starts_with('\'')) out += "\\&";  // no request
  for (std::size_t i = 0; i < text.size(); ++i) switch (text[i]) {
      case '\\': out += "\\e"; break;
      case '-': out += "\\-"; break;
      case '\'': out += "\\(aq"; break;
      case '`': out += "\\(ga"; break;
      case '"': out += "\\(dq"; break;
      case '^': out += "\\(ha"; break;
      case '~': out += "\\(ti"; break;
      case '\n': out += ' '; break;
      default: out += text[i];
    }
  return out;
}

std::string entry(const std::string& name, const std::string& meaning) {
  return fmt::format(".TP\n\\fB{}\\fR\n{}\n", roff(name), roff(meaning));
}

/// A flag's names are bold, its value is slanted.
std::string entry(const ManualFlag& flag) {
  std::string names;
  for (const std::string& name : flag.names)
    names += fmt::format("{}\\fB{}\\fR", names.empty() ? "" : ", ", roff(name));
  if (!flag.value.empty()) names += fmt::format(" \\fI{}\\fR", roff(flag.value));
  if (flag.several) names += " ...";
  return fmt::format(".TP\n{}\n{}\n", names, roff(help_of(flag)));
}

std::string roff_paragraphs(const ManualCommand& command) {
  std::string text;
  for (const std::string& paragraph : command.paragraphs) {
    if (!paragraph.starts_with(' ')) {
      text += fmt::format(".PP\n{}\n", roff(capital(paragraph)));
      continue;
    }
    text += ".PP\n.nf\n";
    for (const std::string_view line : io::lines_of(paragraph)) text += roff(std::string(line)) + "\n";
    text += ".fi\n";
  }
  return text;
}

std::string facts(const std::string& heading, const std::vector<ManualFact>& all) {
  if (all.empty()) return {};
  std::string text = fmt::format(".SH {}\n", heading);
  for (const ManualFact& fact : all) text += entry(fact.name, fact.meaning);
  return text;
}

std::string synopsis(const std::string& program, const ManualCommand& command) {
  return fmt::format(".PP\n\\fB{}\\fR {}\n", roff(program), roff(usage_of(command)));
}

// Markdown

/// Text that Markdown shows as it is, in a cell of a table too.
std::string plain(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (std::string_view("\\`*_[]<>|#~").find(c) != std::string_view::npos) out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

/// Text as code in a cell of a table; none of ours has a backtick.
std::string code(const std::string& text) {
  std::string out = "`";
  for (const char c : text) out += c == '|' ? "\\|" : std::string(1, c);
  return out + "`";
}

std::string table(const std::vector<ManualFlag>& flags) {
  std::string text = "| flag | meaning |\n|---|---|\n";
  for (const ManualFlag& flag : flags)
    text += fmt::format("| {} | {} |\n", code(heading_of(flag)), plain(help_of(flag)));
  return text + "\n";
}

std::string chapter(const std::string& program, const ManualCommand& command, const std::string& heading) {
  std::string text = fmt::format("{} {}\n\n", heading, command.name);
  for (const std::string& paragraph : command.paragraphs)
    text += paragraph.starts_with(' ') ? "```\n" + paragraph + "\n```\n\n" : plain(capital(paragraph)) + "\n\n";
  text += fmt::format("```\n{} {}\n```\n\n", program, usage_of(command));
  if (!command.arguments.empty()) text += table(command.arguments);
  for (const ManualSection& section : heading == "##" ? command.sections : own_sections(command)) {
    if (!section.heading.empty()) text += fmt::format("**{}**\n\n", plain(capital(section.heading)));
    text += table(section.flags);
  }
  for (const ManualCommand& one : command.commands) text += chapter(program + " " + one.name, one, heading + "#");
  return text;
}

}  // namespace

std::string man_page(const Manual& manual) {
  const ManualCommand& program = manual.program;
  const std::string name = "bertrand-" + program.name;
  std::string summary = program.summary();
  if (!summary.empty() && 'A' <= summary[0] && summary[0] <= 'Z') summary[0] += 'a' - 'A';
  std::string title = name;
  std::ranges::transform(title, title.begin(), [](char c) { return 'a' <= c && c <= 'z' ? char(c + 'A' - 'a') : c; });

  std::string text =
      fmt::format(".TH {} 1 \"\" \"bertrand {}\" \"User Commands\"\n.nh\n.ad l\n", roff(title), version());
  text += fmt::format(".SH NAME\n{} \\- {}\n", roff(name), roff(summary));
  text += ".SH SYNOPSIS\n" + synopsis(name, program);
  for (const ManualCommand& command : program.commands) text += synopsis(name + " " + command.name, command);
  text += ".SH DESCRIPTION\n" + roff_paragraphs(program);
  text += ".PP\nIn a flag, an underscore may stand for a hyphen.\n";
  text += ".SH OPTIONS\n";
  for (const ManualFlag& argument : program.arguments) text += entry(argument);
  for (const ManualSection& section : program.sections) {
    if (!section.heading.empty()) text += fmt::format(".SS {}\n", roff(capital(section.heading)));
    for (const ManualFlag& flag : section.flags) text += entry(flag);
  }
  if (!program.commands.empty()) text += ".SH COMMANDS\nEach has \\-\\-help, too.\n";
  for (const ManualCommand& command : program.commands) {
    text += fmt::format(".SS {}\n", roff(command.name)) + roff_paragraphs(command);
    for (const ManualFlag& argument : command.arguments) text += entry(argument);
    for (const ManualSection& section : own_sections(command))
      for (const ManualFlag& flag : section.flags) text += entry(flag);
  }
  if (!manual.examples.empty()) text += ".SH EXAMPLES\n";
  for (const ManualFact& example : manual.examples)
    text += fmt::format(".PP\n{}:\n.PP\n.RS\n.nf\n{}\n.fi\n.RE\n", roff(capital(example.meaning)), roff(example.name));
  text += facts("EXIT STATUS", manual.exit_codes);
  text += facts("ENVIRONMENT", manual.environment);
  text += facts("FILES", manual.files);
  return text + ".SH SEE ALSO\n.BR bertrand (1)\n";
}

std::string markdown(const Manual& manual) {
  std::string text = chapter("bertrand " + manual.program.name, manual.program, "##");
  for (const ManualFact& example : manual.examples)
    text += fmt::format("\n{}:\n\n```\n{}\n```\n", capital(example.meaning), example.name);
  text.pop_back();  // the caller ends the last line
  return text;
}

}  // namespace bertrand::cli
