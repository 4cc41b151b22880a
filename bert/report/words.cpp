// Words as rows of their own for tables, sentences for intervals and to look at.
#include "bert/report/words.h"

#include <algorithm>
#include <map>
#include <random>

#include "bert/report/rows.h"
#include "bert/tasks/entity_scores.h"

namespace bertrand::report {
namespace {

/// What the figures of a file are sums of.
struct Counts {
  double words = 0, right = 0;                ///< words in all, and those with the right label
  double truth = 0, predicted = 0, both = 0;  ///< entities, or labels other than O
};

struct Sentence {
  std::string id;
  std::vector<std::string> words;
  std::vector<std::int32_t> truth, predicted;
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

Counts counts_of(const Sentence& sentence, const std::vector<std::string>& labels, bool entities) {
  Counts counts;
  std::vector<std::string> truth, predicted;
  for (std::size_t w = 0; w < sentence.words.size(); ++w) {
    truth.push_back(labels[static_cast<std::size_t>(sentence.truth[w])]);
    predicted.push_back(labels[static_cast<std::size_t>(sentence.predicted[w])]);
    ++counts.words;
    counts.right += truth[w] == predicted[w];
    if (entities) continue;
    counts.truth += truth[w] != "O";
    counts.predicted += predicted[w] != "O";
    counts.both += truth[w] == predicted[w] && truth[w] != "O";
  }
  if (!entities) return counts;
  const auto is = tasks::entities(truth), says = tasks::entities(predicted);
  counts.truth = static_cast<double>(is.size());
  counts.predicted = static_cast<double>(says.size());
  for (const tasks::Entity& one : says) counts.both += std::ranges::find(is, one) != is.end();
  return counts;
}

/// As in rows.h, of sentences that are drawn.
io::Json intervals(const std::vector<Sentence>& sentences, bool spans) {
  io::Json all = io::Json::object();
  if (sentences.size() < 2) return all;
  constexpr std::size_t kResamples = 1000;
  std::mt19937_64 random(12345);
  std::map<std::string, std::vector<double>> values;
  const auto share = [](double part, double whole) { return whole > 0 ? part / whole : 0; };
  for (std::size_t k = 0; k < kResamples; ++k) {
    Counts sum;
    for (std::size_t i = 0; i < sentences.size(); ++i) {
      const Counts& one = sentences[random() % sentences.size()].counts;
      sum.words += one.words, sum.right += one.right;
      sum.truth += one.truth, sum.predicted += one.predicted, sum.both += one.both;
    }
    values["eval_accuracy"].push_back(share(sum.right, sum.words));
    if (!spans) continue;
    values["eval_precision"].push_back(share(sum.both, sum.predicted));
    values["eval_recall"].push_back(share(sum.both, sum.truth));
    values["eval_f1"].push_back(share(2 * sum.both, sum.truth + sum.predicted));
  }
  for (auto& [name, list] : values) {
    std::ranges::sort(list);
    all[name] = {list[kResamples / 40], list[kResamples - 1 - kResamples / 40]};
  }
  all["resamples"] = kResamples;
  return all;
}

/// The sentences with the most wrong words, each word with what is wrong about it.
io::Json wrong_sentences(const std::vector<Sentence>& sentences, const std::vector<std::string>& labels,
                         std::size_t most) {
  std::vector<const Sentence*> wrong;
  for (const Sentence& one : sentences)
    if (one.counts.right < one.counts.words) wrong.push_back(&one);
  std::ranges::stable_sort(wrong, std::greater<>(),
                           [](const Sentence* one) { return one->counts.words - one->counts.right; });
  wrong.resize(std::min(wrong.size(), most));
  constexpr std::size_t kWords = 200;
  io::Json list = io::Json::array();
  for (const Sentence* one : wrong) {
    io::Json words = io::Json::array();
    for (std::size_t w = 0; w < std::min(one->words.size(), kWords); ++w) {
      const auto truth = static_cast<std::size_t>(one->truth[w]), said = static_cast<std::size_t>(one->predicted[w]);
      words.push_back(truth == said ? io::Json{one->words[w], labels[truth]}
                                    : io::Json{one->words[w], labels[truth], labels[said]});
    }
    list.push_back({{"id", one->id}, {"words", std::move(words)}, {"wrong", one->counts.words - one->counts.right}});
  }
  return list;
}

}  // namespace

io::Json words_of(std::string_view lines, const Extent& extent) {
  Rows rows{.kind = tasks::Kind::classification};  // of words
  std::vector<Sentence> sentences;
  std::string task;
  read_lines(lines, [&](std::int64_t number, io::JsonReader& line) {
    if (number == 1) {
      task = line.text("task");
      rows.labels = texts_of(line.list("labels"));
      return;
    }
    Sentence sentence{.id = line.text("id", "")};
    for (const io::Json& word : line.list("words"))
      sentence.words.push_back(word.is_string() ? word.get<std::string>() : "");
    const std::size_t count = sentence.words.size(), labels = rows.labels.size();
    sentence.truth = labels_of(line, "label", labels, count);
    sentence.predicted = labels_of(line, "prediction", labels, count);
    const io::Json& probabilities = line.list("probabilities");
    if (probabilities.size() != count) line.refuse("probabilities", fmt::format("{} numbers", count), &probabilities);
    sentence.counts = counts_of(sentence, rows.labels, task == "ner");
    for (std::size_t w = 0; w < count; ++w) {
      Row row{.tokens = static_cast<std::int64_t>(count)};
      row.truth.assign(labels, 0), row.predicted.assign(labels, 0), row.probabilities.assign(labels, 0);
      row.truth[static_cast<std::size_t>(sentence.truth[w])] = 1;
      row.predicted[static_cast<std::size_t>(sentence.predicted[w])] = 1;
      if (probabilities[w].is_number())
        row.probabilities[static_cast<std::size_t>(sentence.predicted[w])] = probabilities[w].get<double>();
      row.right = row.truth == row.predicted;
      rows.rows.push_back(std::move(row));
    }
    sentences.push_back(std::move(sentence));
  });
  io::Json json{{"kind", "words"}, {"labels", rows.labels}, {"rows", sentences.size()}};
  if (rows.rows.empty()) return json;
  json["intervals"] = intervals(sentences, task == "ner" || task == "punct");
  add_class_figures(rows, extent, json);
  json["sentences"] = wrong_sentences(sentences, rows.labels, extent.rows);
  return json;
}

}  // namespace bertrand::report
