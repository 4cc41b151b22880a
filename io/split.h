// A text cut at one character: its lines, the cells of a row, the values of a flag.
#pragma once
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace bertrand::io {

/// Parts of a text one after the other, for a range-for: they point into the text, which must stay as long.
class Parts {
 public:
  Parts(std::string_view text, char separator, bool has_some)
      : rest_(text), separator_(separator), has_some_(has_some) {
    part_ = rest_.substr(0, rest_.find(separator_));
  }

  Parts begin() const { return *this; }
  std::default_sentinel_t end() const { return {}; }

  std::string_view operator*() const { return part_; }
  Parts& operator++() {
    has_some_ = part_.size() < rest_.size();  // a separator follows, and so does a part
    if (!has_some_) return *this;
    rest_.remove_prefix(part_.size() + 1);
    part_ = rest_.substr(0, rest_.find(separator_));
    return *this;
  }
  bool operator==(std::default_sentinel_t) const { return !has_some_; }

 private:
  std::string_view rest_, part_;  // rest_ begins with part_
  char separator_;
  bool has_some_;
};

/// What stands between the separators: at least one part, and any may be empty.
inline Parts split(std::string_view text, char separator) { return {text, separator, true}; }

/// The lines, each without its \n, which the last may lack: "a\n" has one, "" has none.
inline Parts lines_of(std::string_view text) {
  return {text.substr(0, text.size() - text.ends_with('\n')), '\n', !text.empty()};
}

/// The value of a flag that is a list.
inline std::vector<std::string> comma_list(std::string_view text) {
  std::vector<std::string> values;
  for (const std::string_view value : split(text, ',')) values.emplace_back(value);
  return values;
}

}  // namespace bertrand::io
