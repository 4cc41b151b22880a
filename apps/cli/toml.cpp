#include "apps/cli/toml.h"

#include <fmt/format.h>

// What toml++ asserts of a file a user's file can break (it begins with "[#"): it finds the same error behind the
// assertion, which must neither end the program nor, with NDEBUG, be what clang takes for true.
#undef NDEBUG
#define TOML_ASSERT(condition) static_assert(true)
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>
#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include "io/error.h"
#include "io/files.h"

namespace bertrand::cli {
namespace {

/// Text, a number, true or false; none of anything else.
std::optional<std::string> text_of(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* whole = node.as_integer()) return fmt::format("{}", whole->get());
  if (const auto* real = node.as_floating_point()) return fmt::format("{}", real->get());
  if (const auto* choice = node.as_boolean()) return choice->get() ? "true" : "false";
  return std::nullopt;
}

class Reader {
 public:
  Reader(std::string file, const std::function<bool(const std::vector<std::string>&)>& is_wanted)
      : file_(std::move(file)), is_wanted_(is_wanted) {}

  void add(const toml::table& table) {
    for (const auto& [key, node] : table) {
      if (const toml::table* inner = node.as_table()) {
        section_.emplace_back(key.str());
        if (is_wanted_(section_)) add(*inner);
        section_.pop_back();
      } else {
        found_.emplace_back(node.source().begin, setting_of(std::string(key.str()), node));
      }
    }
  }
  /// In the order of the file; toml++ has names in theirs.
  std::vector<TomlSetting> settings() && {
    std::ranges::sort(found_, {}, [](const auto& one) { return std::pair(one.first.line, one.first.column); });
    std::vector<TomlSetting> settings;
    for (auto& [place, setting] : found_) settings.push_back(std::move(setting));
    return settings;
  }

 private:
  TomlSetting setting_of(std::string name, const toml::node& node) const {
    TomlSetting setting{.name = std::move(name), .values = {}, .depth = section_.size()};
    const auto take = [&](const toml::node& one) {
      std::optional<std::string> text = text_of(one);
      if (!text)
        fail(Failure::usage, "{}:{}: {}: expected text, numbers, true or false, got {}", file_, one.source().begin.line,
             setting.name,
             one.is_table()   ? "a table"
             : one.is_array() ? "a list"
                              : "a date");
      setting.values.push_back(*std::move(text));
    };
    if (const toml::array* list = node.as_array())
      for (const toml::node& one : *list) take(one);
    else take(node);
    return setting;
  }

  std::string file_;
  const std::function<bool(const std::vector<std::string>&)>& is_wanted_;
  std::vector<std::string> section_;
  std::vector<std::pair<toml::source_position, TomlSetting>> found_;
};

}  // namespace

std::vector<TomlSetting> read_toml(const std::filesystem::path& file,
                                   const std::function<bool(const std::vector<std::string>&)>& is_wanted) {
  Reader reader(file.string(), is_wanted);
  try {
    reader.add(toml::parse(io::read_file(file)));
  } catch (const toml::parse_error& error) {
    std::string what(error.description());
    what[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(what[0])));
    fail(Failure::usage, "{}:{}: expected TOML: {}{}", file.string(), error.source().begin.line, what,
         what.find("parsing value") == what.npos ? "" : "; hint: text stands in quotes, lists in []");
  }
  return std::move(reader).settings();
}

std::string toml_value(const std::string& value) {
  try {
    const toml::table table = toml::parse("value = " + value);
    const toml::node& node = *table.get("value");
    // Read again it is the same text: not so of 1_000, of 1.10, and of a number with a comment.
    if (!node.is_string() && text_of(node) == value) return value;
  } catch (const toml::parse_error&) {  // text
  }
  std::string quoted = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') quoted.append({'\\', c});
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) quoted += fmt::format("\\u{:04x}", static_cast<int>(c));
    else quoted += c;
  }
  return quoted + '"';
}

}  // namespace bertrand::cli
