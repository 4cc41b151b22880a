// What the programs print of themselves: pages that man shows without a warning, and completions that shells take.
#include "apps/cli/manual.h"

#include <doctest/doctest.h>

#include <CLI/CLI.hpp>
#include <regex>
#include <set>
#include <sstream>

#include "io/version.h"
#include "support/program.h"

using namespace bertrand;
using support::run_program;

namespace {

const std::string kScript = paths::source + "/scripts/manuals.sh";

std::vector<std::string> programs() {
  std::vector<std::string> all = {"prepare", "pretrain", "finetune", "predict",
                                  "extract", "evaluate", "export",   "report"};
  if (std::filesystem::exists(paths::binary + "/serve")) all.push_back("serve");
  return all;
}

std::string printed(const std::string& program, const std::string& form) {
  const support::Outcome outcome = run_program(program, {"--print", form});
  CHECK(outcome.code == 0);
  CHECK(outcome.error == "");
  return outcome.out;
}

/// What a shell command prints on both streams; `failed` if it ends with another code than 0.
std::string shell(const std::string& command) {
  const support::TemporaryDirectory directory;
  const std::string out = directory / "out";
  support::write_text(directory / "script", command);
  const int status = std::system(("bash '" + (directory / "script").string() + "' >'" + out + "' 2>&1").c_str());
  return (status == 0 ? "" : "failed: ") + support::read_text(out);
}

bool is_there(const std::string& tool) {
  if (shell("command -v " + tool).starts_with("/")) return true;
  MESSAGE("SKIPPED: no " << tool);
  return false;
}

/// The folder that scripts/manuals.sh writes.
struct Manuals {
  support::TemporaryDirectory directory;
  std::string folder = directory / "";  ///< a slash at its end
  std::string path = folder + "manuals";
  explicit Manuals(const std::string& before = "") {
    REQUIRE(shell(before + "'" + kScript + "' '" + paths::binary + "' '" + path + "'") == "");
  }
  std::string file(const std::string& name) const { return path + "/" + name; }
};

std::string replaced(const std::string& text, const std::string& from, const std::string& to) {
  std::string out;
  for (std::size_t at = 0;;) {
    const std::size_t found = text.find(from, at);
    out += text.substr(at, found - at);
    if (found == std::string::npos) return out;
    out += to;
    at = found + from.size();
  }
}

/// The flags that --help of a program or of one of its commands begins a line with.
std::set<std::string> flags_in_help(const std::string& program) {
  std::string pages = run_program(program, {"--help"}).out;
  std::istringstream lines(pages);
  bool names_commands = false;
  for (std::string line; std::getline(lines, line);) {
    std::smatch command;
    if (line.empty()) names_commands = false;
    if (names_commands && std::regex_search(line, command, std::regex("^  ([a-z0-9]+) ")))
      pages += run_program(program, {command[1], "--help"}).out;
    if (line == "Subcommands:") names_commands = true;
  }
  std::set<std::string> flags;
  const std::regex line("(?:^|\n)  ((?:--?[a-z0-9-]+,?)+)"), one("--[a-z0-9-]+");
  for (std::sregex_iterator at(pages.begin(), pages.end(), line), end; at != end; ++at) {
    const std::string names = (*at)[1];
    for (std::sregex_iterator name(names.begin(), names.end(), one); name != end; ++name) flags.insert(name->str());
  }
  return flags;
}

/// What bash would offer for a line of words of which the last is being typed.
std::string offered(const Manuals& manuals, const std::string& function, const std::string& words) {
  return shell("cd '" + manuals.folder + "'\n" + ". manuals/bash/bertrand\n. manuals/bash/bertrand-pretrain\n" +
               ". manuals/bash/bertrand-prepare\nCOMP_WORDS=(" + words + ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n" +
               function +
               "\n((${#COMPREPLY[@]})) && printf '%s\\n' \"${COMPREPLY[@]}\" | LC_ALL=C sort | paste -sd ' ' | tr -d "
               "'\\n'\ntrue");
}

/// The manual of a program whose texts have every character that some form gives a meaning.
cli::Manual odd_manual() {
  CLI::App app("Does it. More: .", "bertrand-try");
  bool odd = false;
  app.add_flag("--odd", odd, ".a \\n 'b' \"c\" |d| [e] <f> g-h: `i` ~ $HOME *");
  app.add_option("--word")->type_name("NAME|FILE");
  cli::set_words(app.get_option("--word"), {"one", "two"});
  app.add_flag("--hidden", odd, "x")->group("");
  return cli::manual_of(app);
}

}  // namespace

TEST_CASE("every flag that --help names is in every form of the manual") {
  for (const std::string& program : programs()) {
    const std::set<std::string> flags = flags_in_help(program);
    CHECK(flags.size() >= 3);
    CHECK_FALSE(flags.contains("--print"));
    for (const std::string form : {"man", "markdown", "bash", "zsh", "fish"}) {
      const std::string text = replaced(printed(program, form), "\\-", "-");
      for (const std::string& flag : flags) {
        CAPTURE(program);
        CAPTURE(form);
        CAPTURE(flag);
        const std::string name = form == "fish" ? "-l " + flag.substr(2) : flag;
        CHECK(std::regex_search(text, std::regex(name + "(?![a-z0-9-])")));
      }
    }
  }
  CHECK(run_program("pretrain", {"--print", "html"}).error ==
        "error: --print: expected one of man, markdown, bash, zsh, fish, got \"html\"\n");
}

TEST_CASE("text of any kind stands in every form as it is") {
  const cli::Manual manual = odd_manual();
  CHECK(manual.program.name == "try");
  CHECK(manual.program.flags().size() == 3);  // --help, too
  const auto has = [](const std::string& text, const std::string& part) {
    CHECK_MESSAGE(text.find(part) != std::string::npos, text, "\nexpected ", part);
  };
  const std::string page = cli::man_page(manual);
  has(page, "bertrand\\-try \\- does it\n");
  has(page, "\n\\fB\\-\\-odd\\fR\n\\&.a \\en \\(aqb\\(aq \\(dqc\\(dq |d| [e] <f> g\\-h: \\(gai\\(ga \\(ti $HOME *\n");
  has(cli::markdown(manual), "| `--odd` | .a \\\\n 'b' \"c\" \\|d\\| \\[e\\] \\<f\\> g-h: \\`i\\` \\~ $HOME \\* |\n");
  has(cli::markdown(manual), "| `--word NAME\\|FILE` |");
  has(cli::bash_completion(manual), "[--word]='one two <file>'");
  has(cli::zsh_completion(manual), "--odd[.a \\\\n '\\''b'\\'' \"c\" |d| \\[e\\] <f> g-h\\: `i` ~ $HOME *]'");
  has(cli::zsh_completion(manual), ":NAME|FILE:{compadd -- one two; _files}'");
  has(cli::fish_completion(manual), "-d '.a \\\\n \\'b\\' \"c\" |d| [e] <f> g-h: `i` ~ $HOME *'");
  has(cli::fish_completion(manual), "-l word -r -F -a 'one two'");
}

TEST_CASE("a page of man has all that a manual tells, in the usual order") {
  const cli::ManualSection general{.is_general = true, .flags = {{.names = {"--help"}, .help = "this"}}};
  const cli::Manual manual{
      .program =
          {.name = "try",
           .paragraphs = {"Does it. More.", " a  table\n b"},
           .arguments = {{.names = {"FILE"}, .help = "input", .required = true, .several = true}},
           .sections = {{.heading = "numbers",
                         .flags = {{.names = {"--one", "-o"}, .value = "INT", .help = "a number", .required = true}}},
                        general},
           .commands = {{.name = "part",
                         .paragraphs = {"does less."},
                         .arguments = {{.names = {"NAME"}, .help = "whose"}},
                         .sections = {{.flags = {{.names = {"--two"}, .help = "both"}}}, general}}}},
      .examples = {{"try --one 1", "the least"}},
      .exit_codes = {{"0", "success"}},
      .environment = {{"HOME", "where"}},
      .files = {{"~/.try", "settings"}}};
  CHECK(cli::man_page(manual) == ".TH BERTRAND\\-TRY 1 \"\" \"bertrand " + std::string(version()) + R"(" "User Commands"
.nh
.ad l
.SH NAME
bertrand\-try \- does it
.SH SYNOPSIS
.PP
\fBbertrand\-try\fR \-\-one, \-o INT COMMAND [FLAG]... FILE ...
.PP
\fBbertrand\-try part\fR [FLAG]... [NAME]
.SH DESCRIPTION
.PP
Does it. More.
.PP
.nf
 a  table
 b
.fi
.PP
In a flag, an underscore may stand for a hyphen.
.SH OPTIONS
.TP
\fBFILE\fR ...
input (needed)
.SS Numbers
.TP
\fB\-\-one\fR, \fB\-o\fR \fIINT\fR
a number (needed)
.TP
\fB\-\-help\fR
this
.SH COMMANDS
Each has \-\-help, too.
.SS part
.PP
Does less.
.TP
\fBNAME\fR
whose
.TP
\fB\-\-two\fR
both
.SH EXAMPLES
.PP
The least:
.PP
.RS
.nf
try \-\-one 1
.fi
.RE
.SH EXIT STATUS
.TP
\fB0\fR
success
.SH ENVIRONMENT
.TP
\fBHOME\fR
where
.SH FILES
.TP
\fB\(ti/.try\fR
settings
.SH SEE ALSO
.BR bertrand (1)
)");
}

TEST_CASE("man shows every page without a warning") {
  if (!is_there("man")) return;
  const Manuals manuals;
  support::write_text(manuals.file("odd.1"), cli::man_page(odd_manual()));
  const std::string odd = shell("LC_ALL=C.UTF-8 MANWIDTH=200 man -l --warnings=all '" + manuals.file("odd.1") + "'");
  CHECK_MESSAGE(odd.find(" .a \\n 'b' \"c\" |d| [e] <f> g-h: `i` ~ $HOME *\n") != std::string::npos, odd);
  for (const std::string& program : programs()) {
    for (const std::string locale : {"C", "C.UTF-8"}) {
      const std::string page = manuals.file("man1/bertrand-" + program + ".1");
      CHECK(shell("LC_ALL=" + locale + " man -l --warnings=all '" + page + "' 2>&1 >/dev/null") == "");
    }
    CHECK(shell("man -l '" + manuals.file("man1/bertrand.1") + "'").find("\n       " + program) != std::string::npos);
  }
  CHECK(shell("man -l --warnings=all '" + manuals.file("man1/bertrand.1") + "' 2>&1 >/dev/null") == "");
}

TEST_CASE("bash completes commands, flags, names and files") {
  const Manuals manuals;
  for (const std::string& program : programs())
    CHECK(shell("bash -n '" + manuals.file("bash/bertrand-" + program) + "'") == "");
  support::write_text(manuals.file("bash/odd"), cli::bash_completion(odd_manual()));
  for (const std::string name : {"bertrand", "odd"})
    CHECK(shell("bash -n '" + manuals.file("bash/" + name) + "'") == "");
  support::write_text(manuals.directory / "text one", "");
  std::filesystem::create_directory(manuals.directory / "tests");

  const auto pretrain = [&](const std::string& words) {
    const std::string alone = offered(manuals, "_bertrand_pretrain", "bertrand-pretrain " + words);
    CHECK(offered(manuals, "_bertrand", "bertrand pretrain " + words) == alone);
    return alone;
  };
  CHECK(pretrain("--warm") == "--warmup-ratio --warmup-steps");
  CHECK(pretrain("--no") == "--no-next-sentence --no-shuffle");
  CHECK(pretrain("--precision ''") == "bf16 f16 f32 f64 tf32");
  CHECK(pretrain("--precision = b") == "bf16");
  CHECK(pretrain("--precision =") == "bf16 f16 f32 f64 tf32");
  CHECK(pretrain("--batch-size ''") == "");
  CHECK(pretrain("--strict --schedule li") == "linear");
  CHECK(pretrain("--config t") == "tests text one tiny");
  CHECK(pretrain("--output te") == "tests");
  CHECK(pretrain("--input a te") == "tests text one");
  CHECK(pretrain("--vocab-file a te") == "");  // which takes one
  CHECK(pretrain("--input 'text\\ o'") == "text one");
  const auto prepare = [&](const std::string& words) {
    return offered(manuals, "_bertrand_prepare", "bertrand-prepare " + words);
  };
  CHECK(prepare("''") == "corpus dump records sentences squad tokens vocab");
  CHECK(prepare("--v") == "--version");
  CHECK(prepare("dump te") == "tests text one");
  CHECK(prepare("vocab --si") == "--size");
  CHECK(prepare("dump --on-corrupt s") == "skip stop");
  CHECK(offered(manuals, "_bertrand", "bertrand pre") == "predict prepare pretrain");
  CHECK(offered(manuals, "_bertrand", "bertrand pret") == "pretrain");
  CHECK(offered(manuals, "_bertrand", "bertrand prepare records --dup") == "--dupe-factor");
  CHECK(offered(manuals, "_bertrand", "bertrand nothing --dup") == "");
}

TEST_CASE("zsh takes every completion") {
  if (!is_there("zsh")) return;
  const Manuals manuals;
  for (const std::string& program : programs())
    CHECK(shell("zsh -n '" + manuals.file("zsh/_bertrand-" + program) + "'") == "");
  support::write_text(manuals.file("zsh/_odd"), cli::zsh_completion(odd_manual()));
  for (const std::string name : {"_bertrand", "_odd"})
    CHECK(shell("zsh -n '" + manuals.file("zsh/" + name) + "'") == "");
}

TEST_CASE("fish completes commands, flags, names and files") {
  if (!is_there("fish")) return;
  const Manuals manuals;
  const auto offers = [&](const std::string& line) {
    return shell("cd '" + manuals.folder + "'\nHOME=$PWD PATH=$PWD/bin:$PATH fish --no-config -c '" +
                 "set fish_complete_path $PWD/manuals/fish $fish_complete_path; complete -C\"" + line +
                 "\"' | cut -f 1 | LC_ALL=C sort | tr '\\n' ' '");
  };
  support::write_text(manuals.directory / "text", "");
  // Which only looks for completions of programs that there are.
  CHECK(shell("mkdir '" + manuals.folder + "bin'; cd '" + manuals.folder +
              "bin'; touch bertrand bertrand-pretrain bertrand-prepare; chmod +x *") == "");
  for (const std::string program : {"bertrand-pretrain", "bertrand pretrain"}) {
    CHECK(offers(program + " --warm") == "--warmup-ratio --warmup-steps ");
    CHECK(offers(program + " --precision b") == "bf16 ");
    CHECK(offers(program + " --vocab-file te") == "text ");
    CHECK(offers(program + " --output manu") == "manuals/ ");
    CHECK(offers(program + " --output te") == "");
  }
  CHECK(offers("bertrand-prepare t") == "tokens ");
  CHECK(offers("bertrand prepare vocab --si") == "--size ");
  CHECK(offers("bertrand pret") == "pretrain ");
  support::write_text(manuals.file("fish/odd.fish"), cli::fish_completion(odd_manual()));
  CHECK(shell("fish -n '" + manuals.file("fish/odd.fish") + "'") == "");
}

TEST_CASE("docs/cli.md is what the programs print, on any machine") {
  if (programs().back() != "serve") {
    MESSAGE("SKIPPED: no serve, which the page has a chapter of");
    return;
  }
  const std::string page = support::read_text(paths::source + "/docs/cli.md");
  const bool is_new = page == support::read_text(Manuals().file("cli.md"));
  CHECK_MESSAGE(is_new, "it is old; cmake --build build --target manuals && cp build/manuals/cli.md docs/cli.md");
  const Manuals elsewhere("export COLUMNS=40 LINES=10 BERTRAND_MODULES=/nowhere LC_ALL=C HOME=/nowhere\ntaskset -c 0 ");
  const bool is_same = page == support::read_text(elsewhere.file("cli.md"));
  CHECK_MESSAGE(is_same, "on a machine with one core, a narrow terminal and no modules it is another one");
}
