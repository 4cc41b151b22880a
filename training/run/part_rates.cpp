// Which parts are frozen, and how the learning rate falls from the head to the input.
#include "training/run/part_rates.h"

#include <algorithm>
#include <cmath>

#include "io/error.h"
#include "io/nearest_name.h"

namespace bertrand::training {
namespace {

std::vector<std::string> names_of(const std::vector<nn::Part>& parts) {
  std::vector<std::string> names;
  for (const nn::Part& part : parts) names.push_back(part.name);
  return names;
}

bool is_number(const std::string& name) { return name.find_first_not_of("0123456789") == std::string::npos; }

bool follows(const std::string& name, const std::string& before) {
  return is_number(before) && is_number(name) && std::stol(name) == std::stol(before) + 1;
}

/// "embeddings, 0 to 11, pooler"
std::string shortened(const std::vector<std::string>& names) {
  std::vector<std::string> shown;
  for (std::size_t i = 0, end; i < names.size(); i = end) {
    for (end = i + 1; end < names.size() && follows(names[end], names[end - 1]);) ++end;
    shown.push_back(end - i > 1 ? names[i] + " to " + names[end - 1] : names[i]);
  }
  return fmt::format("{}", fmt::join(shown, ", "));
}

}  // namespace

PartRates::PartRates(std::vector<nn::Part> parts, const Options& options) : parts_(std::move(parts)) {
  for (const nn::Part& part : parts_) rates_.push_back(part.is_idle ? 0 : std::pow(options.decay, part.below));
  if (parts_.empty() && (!options.freeze.empty() || options.decay != 1))
    fail(Failure::usage, "--freeze, --layer-decay: expected a model with parts, got one without");
  if (!options.freeze.empty()) freeze(options.freeze);
}

void PartRates::freeze(std::string_view names) {
  for (std::size_t begin = 0, end; begin <= names.size(); begin = end + 1) {
    end = std::min(names.find(',', begin), names.size());
    const std::string_view item = names.substr(begin, end - begin);
    const std::size_t dash = std::min(item.find('-'), item.size());
    const std::size_t first = find(item.substr(0, dash), item),
                      last = dash < item.size() ? find(item.substr(dash + 1), item) : first;
    if (first > last) fail(Failure::usage, "--freeze: expected a range that goes up, got \"{}\"", item);
    std::fill(rates_.begin() + static_cast<std::ptrdiff_t>(first),
              rates_.begin() + static_cast<std::ptrdiff_t>(last) + 1, 0);
  }
}

std::size_t PartRates::find(std::string_view name, std::string_view item) const {
  const auto found = std::ranges::find(parts_, name, &nn::Part::name);
  if (found == parts_.end()) {
    const std::vector<std::string> names = names_of(parts_);
    const bool has_letters = name.find_first_of("abcdefghijklmnopqrstuvwxyz") != std::string::npos;
    fail(Failure::usage, "--freeze: expected some of {}, got \"{}\"{}", shortened(names), item,
         has_letters ? io::did_you_mean(std::string(name), names) : "");
  }
  return static_cast<std::size_t>(found - parts_.begin());
}

double PartRates::of(std::string_view parameter) const {
  for (std::size_t i = 0; i < parts_.size(); ++i)
    if (parameter.starts_with(parts_[i].prefix)) return rates_[i];
  return 1;
}

Dim PartRates::trained(const nn::Module& model) const {
  Dim count = 0;
  for (const auto& [path, parameter] : model.parameters())
    if (of(path + parameter->part_names().front()) != 0) count += parameter->initial().shape.elements();
  return count;
}

std::string PartRates::text(const nn::Module& model) const {
  std::vector<std::string> frozen;
  std::string rates;
  for (std::size_t i = parts_.size(); i-- > 0;) {
    if (rates_[i] == 0) frozen.insert(frozen.begin(), parts_[i].name);
    else if (parts_[i].below > 0) rates += fmt::format(", {} {:.4g}", parts_[i].name, rates_[i]);
  }
  std::string text;
  if (!frozen.empty())
    text += fmt::format("  frozen      {}: {} parameters are trained\n", shortened(frozen), trained(model));
  if (std::ranges::any_of(rates_, [](double rate) { return rate != 0 && rate != 1; }))
    text += fmt::format("  rates       times: head 1{}\n", rates);
  return text;
}

}  // namespace bertrand::training
