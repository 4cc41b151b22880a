// Names of labels and their numbers.
#include "bert/tasks/labels.h"

#include <algorithm>
#include <utility>

#include "io/error.h"
#include "io/numbers.h"
#include "io/say.h"

namespace bertrand::tasks {
namespace {

std::optional<std::int64_t> integer(std::string_view text) { return io::number_in<std::int64_t>(text); }

/// 0 … n−1, as many as the outputs.
LabelSet numbered(std::size_t outputs) { return LabelSet(numbers_as_names(outputs)); }

}  // namespace

void refuse_invalid_label(const std::string& where) {
  fail(Failure::input, "{}: label: expected UTF-8, got other bytes; hint: iconv turns other encodings into UTF-8",
       where);
}

LabelSet::LabelSet(std::vector<std::string> names) : names_(std::move(names)) {
  for (const std::string& name : names_)
    if (!index_.emplace(name, static_cast<std::int32_t>(index_.size())).second)
      fail(Failure::input, "labels: expected different names, got \"{}\" twice", io::one_line(name));
}

LabelSet LabelSet::sorted(std::vector<std::string> names) {
  const bool numeric =
      std::all_of(names.begin(), names.end(), [](const std::string& n) { return integer(n).has_value(); });
  std::ranges::sort(names, {},
                    [&](std::string_view name) { return std::pair(numeric ? integer(name) : std::nullopt, name); });
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return LabelSet(std::move(names));
}

std::optional<std::int32_t> LabelSet::find(std::string_view name) const {
  const auto found = index_.find(name);
  if (found == index_.end()) return std::nullopt;
  return found->second;
}

bool LabelSet::placeholders() const {
  constexpr std::string_view kPrefix = "LABEL_";
  return std::all_of(names_.begin(), names_.end(), [&](const std::string& name) {
    return name.starts_with(kPrefix) && integer(std::string_view(name).substr(kPrefix.size())).has_value();
  });
}

bool LabelSet::same_names(const LabelSet& other) const {
  return size() == other.size() && std::all_of(names_.begin(), names_.end(),
                                               [&](const std::string& name) { return other.find(name).has_value(); });
}

LabelSet choose_labels(const LabelSet& data, const LabelSet& model, bool training,
                       const std::filesystem::path& config) {
  if (model.empty()) return data;
  const bool known = std::all_of(data.names().begin(), data.names().end(),
                                 [&](const std::string& name) { return model.find(name).has_value(); });
  if (known) return model;
  if (training) return data;
  if (const LabelSet outputs = numbered(model.size());
      std::ranges::all_of(data.names(), [&](const std::string& name) { return outputs.find(name).has_value(); }))
    return outputs;
  if (model.placeholders() && data.size() == model.size()) return data;
  fail(Failure::model, "{}: id2label: expected the data's labels {}, got {}", config.string(), in_braces(data.names()),
       in_braces(model.names()));
}

bool renames_outputs(const LabelSet& data, const LabelSet& model) {
  const auto have_names = [](const LabelSet& labels) {
    return !labels.placeholders() && labels.names() != numbered(labels.size()).names();
  };
  return data.size() == model.size() && have_names(data) && !model.placeholders() && !data.same_names(model);
}

std::string_view trimmed_cell(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return text.substr(text.size());
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

std::vector<std::string> split_labels(const std::string& cell, const std::string& separator) {
  std::vector<std::string> names;
  for (std::string_view rest = cell; !rest.empty();) {
    const std::size_t end = std::min(rest.find(separator), rest.size());
    if (const std::string_view name = trimmed_cell(rest.substr(0, end)); !name.empty()) names.emplace_back(name);
    rest.remove_prefix(std::min(end + separator.size(), rest.size()));
  }
  return names;
}

std::vector<std::string> numbers_as_names(std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) names.push_back(std::to_string(i));
  return names;
}

std::string in_braces(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 8;
  const std::size_t shown = std::min(names.size(), kShown);
  std::string text =
      fmt::format("{{{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ","));
  if (shown < names.size()) text += fmt::format(",… {} more", names.size() - shown);
  return io::one_line(text + "}");
}

}  // namespace bertrand::tasks
