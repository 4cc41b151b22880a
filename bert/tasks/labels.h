// The names of a task's classes, in the order of the classifier's outputs.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bertrand::tasks {

/// Throws Failure::input, beginning with `where`: without these bytes two labels might become one.
[[noreturn]] void refuse_invalid_label(const std::string& where);

class LabelSet {
 public:
  LabelSet() = default;
  /// In this order. Throws Failure::input if a name comes twice.
  explicit LabelSet(std::vector<std::string> names);

  /// The distinct names in order: by value if all are integers, else by their bytes.
  static LabelSet sorted(std::vector<std::string> names);

  std::size_t size() const { return names_.size(); }
  bool empty() const { return names_.empty(); }
  const std::vector<std::string>& names() const { return names_; }
  const std::string& name(std::size_t index) const { return names_.at(index); }
  std::optional<std::int32_t> find(std::string_view name) const;

  /// True if every name is LABEL_<number>: what a configuration says that knows no names.
  bool placeholders() const;
  /// True if both hold the same names, in whatever order.
  bool same_names(const LabelSet& other) const;

 private:
  std::vector<std::string> names_;
  std::map<std::string, std::int32_t, std::less<>> index_;
};

/// Which names a model's outputs get, and in which order. `data` are those of the training file or the task (empty:
/// unknown), `model` those of its config.json. The model's stay if they hold all of the data's. If not, and the model
/// may be trained, the data's are taken. If it may not, its outputs may be called by their numbers, of which the data
/// may lack some, and as many placeholders get the data's names. Throws Failure::model if nothing fits; the message
/// names `config`, the model's file.
LabelSet choose_labels(const LabelSet& data, const LabelSet& model, bool training, const std::filesystem::path& config);

/// Whether outputs that a model has other names for get the data's: as many, none of them a placeholder or the number
/// of its output.
bool renames_outputs(const LabelSet& data, const LabelSet& model);

/// Without blanks and tabs at both ends.
std::string_view trimmed_cell(std::string_view text);

/// The names in a cell, trimmed, without empty ones. The separator is some text.
std::vector<std::string> split_labels(const std::string& cell, const std::string& separator);

/// 0 to count − 1.
std::vector<std::string> numbers_as_names(std::size_t count);

/// "{a,b,c}" for messages; of a long list the first eight and how many more.
std::string in_braces(const std::vector<std::string>& names);

}  // namespace bertrand::tasks
