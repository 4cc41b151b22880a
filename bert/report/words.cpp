// Words as rows of their own for tables, sentences for intervals and to look at.
#include "bert/report/words.h"

#include <algorithm>
#include <span>

#include "bert/report/evaluation.h"
#include "bert/report/intervals.h"
#include "bert/tasks/entity_scores.h"

namespace bertrand::report {
namespace {

/// What the figures of a file are sums of.
struct Counts {
  double words = 0, right = 0;                ///< words in all, and those with the right label
  double truth = 0, predicted = 0, both = 0;  ///< entities, or labels other than O
};

struct Sentence {
  std::string_view line;  ///< of the file
  std::size_t first = 0;  ///< of its words among all rows
  Counts counts;
};

std::vector<std::int32_t> labels_of(io::JsonReader& line, const char* key, std::size_t labels, std::size_t words) {
  const io::Json& list = line.list(key);
  std::vector<std::int32_t> numbers;
  for (const io::Json& one : list)
    if (one.is_number_integer() && one.get<std::int64_t>() >= 0 &&
        one.get<std::int64_t>() < static_cast<std::int64_t>(labels))
      numbers.push_back(one.get<std::int32_t>());
  if (numbers.size() != words || list.size() != words)
    line.refuse(key, fmt::format("{} numbers of labels below {}", words, labels), &list);
  return numbers;
}

Counts counts_of(std::span<const std::int32_t> is, std::span<const std::int32_t> says,
                 const std::vector<std::string>& labels, bool entities) {
  Counts counts;
  std::vector<std::string> truth, predicted;
  for (std::size_t w = 0; w < is.size(); ++w) {
    truth.push_back(labels[static_cast<std::size_t>(is[w])]);
    predicted.push_back(labels[static_cast<std::size_t>(says[w])]);
    ++counts.words;
    counts.right += truth[w] == predicted[w];
    if (entities) continue;
    counts.truth += truth[w] != "O";
    counts.predicted += predicted[w] != "O";
    counts.both += truth[w] == predicted[w] && truth[w] != "O";
  }
  if (!entities) return counts;
  const auto true_ones = tasks::entities(truth), said = tasks::entities(predicted);
  counts.truth = static_cast<double>(true_ones.size());
  counts.predicted = static_cast<double>(said.size());
  for (const tasks::Entity& one : said) counts.both += std::ranges::find(true_ones, one) != true_ones.end();
  return counts;
}

/// Of sentences that are drawn.
io::Json intervals_of(const std::vector<Sentence>& sentences, bool spans) {
  const auto share = [](double part, double whole) { return whole > 0 ? part / whole : 0; };
  return intervals(sentences.size(), kResamples, [&](std::span<const std::size_t> drawn) {
    Counts sum;
    for (const std::size_t i : drawn) {
      const Counts& one = sentences[i].counts;
      sum.words += one.words, sum.right += one.right;
      sum.truth += one.truth, sum.predicted += one.predicted, sum.both += one.both;
    }
    std::map<std::string, double> figures{{"accuracy", share(sum.right, sum.words)}};
    if (!spans) return figures;
    figures["precision"] = share(sum.both, sum.predicted);
    figures["recall"] = share(sum.both, sum.truth);
    figures["f1"] = share(2 * sum.both, sum.truth + sum.predicted);
    return figures;
  });
}

/// The sentences with the most wrong words, each word with what is wrong about it.
io::Json wrong_sentences(const std::vector<Sentence>& sentences, const Rows& rows, std::size_t most) {
  std::vector<const Sentence*> wrong;
  for (const Sentence& one : sentences)
    if (one.counts.right < one.counts.words) wrong.push_back(&one);
  std::ranges::stable_sort(wrong, std::greater<>(),
                           [](const Sentence* one) { return one->counts.words - one->counts.right; });
  wrong.resize(std::min(wrong.size(), most));
  constexpr std::size_t kWords = 200;
  io::Json list = io::Json::array();
  for (const Sentence* one : wrong) {
    const io::Json json = read_again(one->line);
    io::JsonReader line(json, {tasks::kEvaluationRows, Failure::input});
    const io::Json& all = line.list("words");
    io::Json words = io::Json::array();
    for (std::size_t w = 0; w < std::min(all.size(), kWords); ++w) {
      const Row& row = rows.rows[one->first + w];
      const auto name = [&](auto numbers) { return rows.labels[static_cast<std::size_t>(numbers[0])]; };
      io::Json& word = words.emplace_back(io::Json::array());
      word.push_back(all[w].is_string() ? all[w] : io::Json(""));
      word.push_back(name(rows.truth(row)));
      if (!row.right) word.push_back(name(rows.predicted(row)));
    }
    list.push_back(
        {{"id", line.text("id", "")}, {"words", std::move(words)}, {"wrong", one->counts.words - one->counts.right}});
  }
  return list;
}

}  // namespace

io::Json words_of(std::string_view lines, const Extent& extent, const LetGo& let_go) {
  Rows rows{.kind = tasks::Kind::classification};  // of words
  std::vector<Sentence> sentences;
  std::string task;
  read_lines(lines, let_go, [&](const Line& from) {
    io::JsonReader& line = from.json;
    if (from.number == 1) {
      task = line.text("task");
      rows.labels = texts_of(line.list("labels"));
      return;
    }
    line.text("id", "");  // checked here, read where it is shown
    const std::size_t count = line.list("words").size(), labels = rows.labels.size();
    const std::vector<std::int32_t> truth = labels_of(line, "label", labels, count);
    const std::vector<std::int32_t> predicted = labels_of(line, "prediction", labels, count);
    const io::Json& probabilities = line.list("probabilities");
    if (probabilities.size() != count) line.refuse("probabilities", fmt::format("{} numbers", count), &probabilities);
    sentences.push_back(
        {from.text, rows.rows.size(), counts_of(truth, predicted, rows.labels, /*entities=*/task == "ner")});
    for (std::size_t w = 0; w < count; ++w) {
      rows.add({.tokens = static_cast<std::int64_t>(count)}, std::span(truth).subspan(w, 1),
               std::span(predicted).subspan(w, 1));
      const io::Json& p = probabilities[w];
      rows.calibration.add(p.is_number() ? p.get<double>() : 0, rows.rows.back().right);
    }
  });
  io::Json json{{"kind", "words"}, {"labels", rows.labels}, {"rows", sentences.size()}};
  if (rows.rows.empty()) return json;
  json["intervals"] = intervals_of(sentences, task == "ner" || task == "punct");
  add_class_figures(rows, extent, json);
  json["sentences"] = wrong_sentences(sentences, rows, extent.rows);
  return json;
}

}  // namespace bertrand::report
