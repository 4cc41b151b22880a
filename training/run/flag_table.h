// The flags of a training program in one table: --help, the resume check, the agreement between processes and
// run_config.json all walk it. A new flag is one line in one place.
#pragma once
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "io/choices.h"
#include "io/numbers.h"

namespace bertrand::training {

/// What a flag means for the run.
enum class Role {
  local,     ///< of one process alone
  command,   ///< says what to do now: the same in all processes
  recorded,  ///< stands in run_config.json
  agreed,    ///< recorded, and the same in all processes
  decisive   ///< agreed, and decides the result: a run is resumed with the same value only
};

/// Whether the flag is among the words of a command line.
bool is_given(const std::string& flag, const std::vector<std::string>& command);

/// (flag, value) as text.
using FlagValues = std::vector<std::pair<std::string, std::string>>;

struct Flag {
  /// Where the value comes from and goes to.
  struct Target {
    std::function<void(const std::vector<std::string>&)> set;  ///< throws Error(Failure::usage) naming the flag
    std::function<std::string()> value;                        ///< as it is now
  };

  std::string name;   ///< --batch-size
  std::string type;   ///< of its value in --help: INT, NAME, FILE; empty: a switch
  std::string help;   ///< with unit, range and default
  std::string group;  ///< heading in --help
  Role role = Role::local;
  Target target;
  bool several = false;  ///< takes one value or more
  bool required = false;
  std::string negative = {};            ///< of a switch: the name that turns it off
  std::string excludes = {};            ///< a flag that cannot be given beside this one
  std::vector<std::string> words = {};  ///< values that have names: all of a choice, some of another flag
  /// The page of a switch that prints one and ends the program.
  std::function<std::string()> page = {};
};

/// What the author of a flag says of it.
struct FlagText {
  std::string name, help;
  Role role = Role::local;
  std::string unset = {};               ///< what an absent flag means; empty: the value that its member has now
  std::string type = {};                ///< in --help, if it is not the usual one of the kind
  std::vector<std::string> words = {};  ///< values that have names
};

class FlagTable {
 public:
  /// The flags that are added from now on stand under this heading of --help.
  void heading(std::string text) { heading_ = std::move(text); }

  /// Each reads into `member`, which must outlive the table, and returns the flag for what is special about it.
  template <class T>
  Flag& number(FlagText text, T& member, const io::Range<T>& range) {
    return add_number(std::move(text), member, range, [&member] { return fmt::format("{}", member); });
  }
  /// `absent` is the text of its value if it has none.
  template <class T>
  Flag& number(FlagText text, std::optional<T>& member, const io::Range<T>& range, const std::string& absent) {
    return add_number(std::move(text), member, range,
                      [&member, absent] { return member ? fmt::format("{}", *member) : absent; });
  }
  /// One of `choices`.
  template <class T>
  Flag& choice(FlagText text, T& member, const io::Choices<T>& choices) {
    text.help += fmt::format(" ({}; default {})", io::names_of(choices), io::name_in(choices, member));
    if (text.type.empty()) text.type = "NAME";
    text.words = io::name_list(choices);
    return add(text, {.set =
                          [&member, choices, flag = text.name](const std::vector<std::string>& values) {
                            member = io::chosen(flag, values.front(), choices);
                          },
                      .value = [&member, choices] { return io::name_in(choices, member); }});
  }
  /// Text as it is, that `check` does not refuse. The help says its default.
  Flag& text(FlagText text, std::string& member, const std::function<void(const std::string& value)>& check = {});
  Flag& path(FlagText text, std::filesystem::path& member);
  Flag& paths(FlagText text, std::vector<std::filesystem::path>& member);
  /// One text or more.
  Flag& texts(FlagText text, std::vector<std::string>& member);
  /// A flag without a value: true if it is given.
  Flag& toggle(FlagText text, bool& member);
  /// A flag without a value that prints a page and ends the program.
  Flag& page(FlagText text, std::function<std::string()> print);

  const std::vector<Flag>& flags() const { return flags_; }
  const Flag& flag(const std::string& name) const;
  /// The values of the flags of this role, in the order of the table.
  FlagValues values(Role role) const;

 private:
  Flag& add(const FlagText& text, Flag::Target target);
  template <class T, class Member>
  Flag& add_number(FlagText text, Member& member, const io::Range<T>& range, std::function<std::string()> value) {
    text.help += fmt::format(" ({}; default {})", range.text(), text.unset.empty() ? value() : text.unset);
    if (text.type.empty()) text.type = std::is_integral_v<T> ? "INT" : "FLOAT";
    return add(text, {.set =
                          [&member, range, name = text.name](const std::vector<std::string>& values) {
                            member = io::parse_number(name, values.front(), range);
                          },
                      .value = std::move(value)});
  }

  std::string heading_;
  std::vector<Flag> flags_;
};

}  // namespace bertrand::training
