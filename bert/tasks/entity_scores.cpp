#include "bert/tasks/entity_scores.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "bert/tasks/numpy_sum.h"
#include "io/error.h"
#include "io/json.h"
#include "io/say.h"

namespace bertrand::tasks {
namespace {

/// A tag taken apart: B-PER is B and PER.
struct Tag {
  char prefix = 'O';  ///< its first byte: a character of several is like none below
  std::string_view type;
};

/// As seqeval cuts a tag: the prefix is its first character, the type what follows the first hyphen after that.
Tag parsed(std::string_view tag) {
  if (tag.empty()) return {.prefix = 'O', .type = "_"};
  std::size_t prefix = 1;  // bytes
  while (prefix < tag.size() && (static_cast<unsigned char>(tag[prefix]) & 0xC0) == 0x80) ++prefix;
  std::string_view type = tag.substr(prefix);
  if (const std::size_t hyphen = type.find('-'); hyphen != std::string_view::npos) type.remove_prefix(hyphen + 1);
  return {.prefix = tag[0], .type = type.empty() ? "_" : type};
}

bool ends_between(const Tag& before, const Tag& tag) {
  if (before.prefix == 'E' || before.prefix == 'S') return true;
  const bool closed = tag.prefix == 'B' || tag.prefix == 'S' || tag.prefix == 'O';
  if ((before.prefix == 'B' || before.prefix == 'I') && closed) return true;
  return before.prefix != 'O' && before.prefix != '.' && before.type != tag.type;
}

bool begins_at(const Tag& before, const Tag& tag) {
  if (tag.prefix == 'B' || tag.prefix == 'S') return true;
  const bool apart = before.prefix == 'E' || before.prefix == 'S' || before.prefix == 'O';
  if (apart && (tag.prefix == 'E' || tag.prefix == 'I')) return true;
  return tag.prefix != 'O' && tag.prefix != '.' && before.type != tag.type;
}

/// With F1 as seqeval computes it, to the last digit.
ClassFigures figures_of(const ClassCounts& counts) {
  ClassFigures of = counts.figures();
  of.f1 = ratio(2 * of.precision * of.recall, of.precision + of.recall);
  return of;
}

}  // namespace

bool is_entity_tag(std::string_view label) {
  const bool has_form = label.size() == 1 || (label.size() > 2 && label[1] == '-');
  return has_form && std::string_view("BIESMLU").find(label[0]) != std::string_view::npos;
}

std::string text_of_no_entity_tag(const std::string& label) {
  return fmt::format(
      "expected O, or those of entities as B-PER, got {}; hint: --task pos, punct or tokens has the figures of other "
      "labels",
      io::shown(io::Json(label)));
}

std::vector<Entity> entities(std::span<const std::string> tags) { return EntityFinder().next(tags); }

std::vector<Entity> EntityFinder::next(std::span<const std::string> tags) {
  std::vector<Entity> found;
  Tag before = parsed("O");
  for (std::size_t i = 0; i <= tags.size(); ++i) {
    const Tag tag = i < tags.size() ? parsed(tags[i]) : parsed("O");
    const auto here = static_cast<std::int64_t>(i);
    if (ends_between(before, tag)) found.push_back({std::string(before.type), begin_, here - 1});
    if (begins_at(before, tag)) begin_ = here;
    before = tag;
  }
  begin_ -= std::ssize(tags) + 1;
  return found;
}

bool is_illegal(const std::string& before, const std::string& tag) {
  const Tag own = parsed(tag), left = parsed(before);
  // Without a hyphen E and M begin words, as MISC does.
  const bool inside = own.prefix == 'I' || ((own.prefix == 'E' || own.prefix == 'M') && tag.substr(1, 1) == "-");
  if (!inside) return false;
  return !(left.prefix == 'B' || left.prefix == 'I' || left.prefix == 'M') || left.type != own.type;
}

std::optional<std::size_t> IllegalPairs::add(std::span<const std::string> tags) {
  std::optional<std::size_t> first;
  for (std::size_t i = 0; i < tags.size(); ++i) {
    const std::string before = i > 0 ? tags[i - 1] : "O";
    if (!is_illegal(before, tags[i])) continue;
    ++counts_[{before, tags[i]}];
    if (!first) first = i;
  }
  return first;
}

std::int64_t IllegalPairs::sum() const {
  std::int64_t sum = 0;
  for (const auto& [pair, count] : counts_) sum += count;
  return sum;
}

std::string IllegalPairs::most_frequent() const {
  check(!counts_.empty(), "illegal pairs: expected some, got none");
  const auto& [pair, count] = *std::ranges::max_element(counts_, {}, [](const auto& entry) { return entry.second; });
  return io::one_line(fmt::format("{:.80} before {:.80} ({})", pair.first, pair.second, count));
}

void EntityCounter::add(std::span<const std::string> truth, std::span<const std::string> predicted) {
  check(truth.size() == predicted.size(), "entities: expected as many predicted tags as true ones, {}, got {}",
        truth.size(), predicted.size());
  std::vector<Entity> wanted = truth_.next(truth);
  const std::vector<Entity> got = predicted_.next(predicted);
  std::ranges::sort(wanted);
  for (const Entity& entity : wanted) ++types_[entity.type].truth;
  for (const Entity& entity : got) {
    ClassCounts& counts = types_[entity.type];
    ++counts.predicted;
    if (std::ranges::binary_search(wanted, entity)) ++counts.both;
  }
  for (std::size_t i = 0; i < truth.size(); ++i) {
    ++words_;
    if (truth[i] == predicted[i]) ++right_;
  }
  illegal_.add(predicted);
}

EntityScores EntityCounter::scores() const {
  EntityScores scores{.micro = {}, .macro = {}, .weighted = {}, .types = {}, .words = words_, .illegal = illegal_};
  scores.accuracy = ratio(static_cast<double>(right_), static_cast<double>(words_));
  ClassCounts all;
  std::vector<double> precision, recall, f1, support;
  for (const auto& [type, counts] : types_) {
    const ClassFigures& of = scores.types[type] = figures_of(counts);
    all += counts;
    precision.push_back(of.precision), recall.push_back(of.recall), f1.push_back(of.f1);
    support.push_back(static_cast<double>(of.support));
  }
  scores.micro = figures_of(all);
  if (types_.empty()) return scores;
  const auto mean = [](std::span<const double> x) { return numpy_sum(x) / static_cast<double>(x.size()); };
  const auto weighted = [&](std::vector<double> x) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] *= support[i];
    return ratio(numpy_sum(x), numpy_sum(support));
  };
  scores.macro = {mean(precision), mean(recall), mean(f1), all.truth};
  scores.weighted = {weighted(precision), weighted(recall), weighted(f1), all.truth};
  return scores;
}

}  // namespace bertrand::tasks
