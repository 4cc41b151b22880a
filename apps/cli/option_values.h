// What the value of an option may be, kept with the option: the words that it may be, and whether it names a path.
#pragma once
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace bertrand::cli {

/// Keeps the names that a value of this option may have. They are shown, not enforced: the code that reads the value
/// refuses others. Returns the option.
CLI::Option* set_words(CLI::Option* option, const std::vector<std::string>& words);

/// What set_words() kept; empty for other options.
std::vector<std::string> words_of(const CLI::Option& option);

/// The arguments; a value that is one of its option's words but for capitals becomes that word, as --task QQP.
std::vector<std::string> with_own_spelling(const CLI::App& app, std::vector<std::string> arguments);

enum class Paths { none, files, directories };

/// What kind of path the value is, as its type in --help says (FILE, PATH, DIR, NAME|FILE); of an argument without a
/// flag its name is the type (FILE, RUN).
Paths paths_of(const CLI::Option& option);

/// What to do about a value that is missing or empty.
inline constexpr const char* kEmptyValueHint = "; hint: is a variable of the shell empty?";

/// Throws Error(Failure::usage) if the path, the value of an option, is empty.
void refuse_empty_path(const std::string& option, const std::string& path);
/// Makes the options of `app` throw Error(Failure::usage) for an empty value: it would be as none.
void refuse_empty_values(CLI::App& app);

}  // namespace bertrand::cli
