// Whether a chapter of the book says what is so. usage: check_book CHAPTER.md FOLDER_OF_PROGRAMS
//
//   ```cpp, sh  the last link of the paragraph before is a file (of sh: *.sh): the block is a run of its lines
//   ```output   the paragraph before has "`build-dev/bin/PROGRAM ARGUMENTS` prints": the block is a run of these lines
//
// Other blocks are formulas and commands for a reader. Every difference is a line, and the exit status is then 1.
#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace {

using Lines = std::vector<std::string>;

Lines lines_of(std::istream& text) {
  Lines lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

struct Printed {
  Lines lines;
  int status = 0;
};

/// What a program prints, run once however often a chapter shows it.
const Printed& printed_by(const std::filesystem::path& folder, const std::string& command) {
  static std::map<std::string, Printed> known;
  const auto [found, is_new] = known.try_emplace(command);
  if (!is_new) return found->second;
  std::FILE* const pipe = popen(fmt::format("'{}'/{} 2>&1", folder.string(), command).c_str(), "r");
  std::stringstream text;
  for (int c; pipe && (c = std::fgetc(pipe)) != EOF;) text.put(static_cast<char>(c));
  found->second.status = pipe ? pclose(pipe) : -1;
  found->second.lines = lines_of(text);
  return found->second;
}

/// "" if `block` is a run of `lines`, else where it leaves the run that begins like it for the longest.
std::string difference(const Lines& block, const Lines& lines) {
  if (std::search(lines.begin(), lines.end(), block.begin(), block.end()) != lines.end()) return "";
  std::size_t longest = 0, where = 0;
  for (std::size_t first = 0; first < lines.size(); ++first) {
    std::size_t equal = 0;
    while (equal < block.size() && first + equal < lines.size() && block[equal] == lines[first + equal]) ++equal;
    if (equal > longest) longest = equal, where = first;
  }
  const std::size_t at = where + longest;
  const std::string line = fmt::format("line {} of the block is \"{}\"", longest + 1, block[longest]);
  if (longest == 0) return line + ", which is not there";
  return fmt::format("{}, expected \"{}\"", line, at < lines.size() ? lines[at] : "the end");
}

std::string last_match(const std::string& line, const char* pattern) {
  const std::regex expression(pattern);
  std::string last;
  for (std::sregex_iterator i(line.begin(), line.end(), expression), end; i != end; ++i) last = (*i)[1];
  return last;
}

/// What is wrong with a block of `language` below the paragraph `above`, or "".
std::string check(const std::string& language, const std::string& above, const Lines& block,
                  const std::filesystem::path& chapter, const std::filesystem::path& programs) {
  if (block.empty()) return "expected lines in the block, got none";
  const std::string link = last_match(above, R"(\]\(([^)]+)\))");
  if (language == "cpp" || (language == "sh" && link.ends_with(".sh"))) {
    std::ifstream file(chapter.parent_path() / link);
    if (link.empty() || !file) return "expected a link to the block's file in the paragraph above, got " + above;
    const std::string found = difference(block, lines_of(file));
    return found.empty() ? "" : link + ": " + found;
  }
  if (language == "output") {
    const std::string command = last_match(above, R"(`build-dev/bin/([^`]+)` prints)");
    if (command.empty()) return "expected \"`build-dev/bin/PROGRAM` prints:\" in the paragraph above, got " + above;
    const Printed& printed = printed_by(programs, command);
    if (printed.status != 0) return fmt::format("{}: exit status {}", command, printed.status);
    const std::string found = difference(block, printed.lines);
    return found.empty() ? "" : command + ": " + found;
  }
  if (language.empty() || language == "text" || language == "sh") return "";
  return "expected a block of cpp, output, text or sh, got " + language;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 3) return fmt::print(stderr, "usage: check_book CHAPTER.md FOLDER_OF_PROGRAMS\n"), 2;
  const std::filesystem::path chapter = argv[1];
  std::ifstream file(chapter);
  const Lines lines = lines_of(file);
  std::string above;  // the paragraph before a block
  bool paragraph_ended = true;
  int blocks = 0, wrong = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (!lines[i].starts_with("```")) {
      if (lines[i].empty()) paragraph_ended = true;
      else if (std::exchange(paragraph_ended, false)) above = lines[i];
      else above += " " + lines[i];
      continue;
    }
    const std::size_t first = i;
    Lines block;
    while (++i < lines.size() && lines[i] != "```") block.push_back(lines[i]);
    ++blocks;
    const std::string problem = check(lines[first].substr(3), above, block, chapter, argv[2]);
    if (problem.empty()) continue;
    fmt::print("{}:{}: {}\n", chapter.string(), first + 1, problem);
    ++wrong;
  }
  fmt::print("{}: {} of {} blocks differ\n", chapter.filename().string(), wrong, blocks);
  return wrong == 0 && !lines.empty() ? 0 : 1;
} catch (const std::exception& error) {
  fmt::print(stderr, "check_book: {}\n", error.what());
  return 2;
}
