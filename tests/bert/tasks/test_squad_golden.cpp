// A model's answers to 1,859 questions, against the files that Google's write_predictions makes of PyTorch's logits.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "bert/directory/config_file.h"
#include "bert/directory/model_directory.h"
#include "bert/network/heads.h"
#include "bert/tasks/squad_answers.h"
#include "support/gzip.h"
#include "support/paths.h"
#include "support/worst.h"
#include "tensor/backends.h"

using namespace bertrand;
using namespace bertrand::tasks;

namespace {

const std::string kData = paths::shared + "/data/";
const std::string kModel = kData + "golden_model/squad2_predict/";

nlohmann::json read_json(const std::string& file) {
  std::ifstream in(file);
  return nlohmann::json::parse(in);
}

/// The model in f64, as PyTorch computed.
struct Model {
  std::unique_ptr<Backend> backend = open_cpu({.threads = 2});
  bert::ForQuestionAnswering network{bert::read_config_file(kModel + "config.json", bert::UnknownKeys::keep)};
  nn::ParameterSet parameters{network, *backend, {.dtype = DType::f64, .initialize = false}};

  Model() { bert::load_whole(kModel, parameters); }

  std::vector<ScoredWindow> scored(std::vector<SquadWindow> windows) const {
    const NoGrad no_graph;
    std::vector<bert::Sequence> sequences;
    for (const SquadWindow& window : windows)
      sequences.push_back(bert::sequence_of(window.token_ids, window.context_begin));
    const std::vector<double> logits = ops::to_host<double>(network(bert::pack(sequences, *backend), {}).value());
    std::vector<ScoredWindow> all;
    std::size_t row = 0;
    for (SquadWindow& window : windows) {
      ScoredWindow of{.window = std::move(window), .start = {}, .end = {}};
      for (std::size_t i = 0; i < of.window.token_ids.size(); ++i, ++row) {
        of.start.push_back(logits[2 * row]);
        of.end.push_back(logits[2 * row + 1]);
      }
      all.push_back(std::move(of));
    }
    return all;
  }
};

}  // namespace

TEST_CASE("the answers of a model are those that Google's script writes for PyTorch's logits") {
  if (!std::filesystem::exists(kModel)) {
    MESSAGE("SKIPPED: no data in " << kModel);
    return;
  }
  const Model model;
  const text::Tokenizer tokenizer(text::Vocabulary::load(kData + "vocab/bert-base-uncased/vocab.txt"));
  const auto paragraphs = read_squad(kData + "squad/small/dev-v2.json");
  const SquadFeatures features(paragraphs, tokenizer,
                               {.max_seq_length = 128, .doc_stride = 64, .max_query_length = 24, .threads = 2});
  const AnswerOptions options{.version_2 = true, .null_score_diff_threshold = 3.956};
  const nlohmann::json predictions = read_json(kModel + "predictions.json"),
                       odds = read_json(kModel + "null_odds.json"),
                       n_best = nlohmann::json::parse(support::unpacked(kModel + "nbest_predictions.json.gz"));
  text::CachingTokenizer caching(tokenizer);
  std::size_t other_texts = 0, other_n_best = 0, other_odds = 0;
  double worst = 0;
  for (const SquadExample& example : features.examples()) {
    std::vector<SquadWindow> windows;
    features.windows(example, caching, windows);
    const std::vector<ScoredWindow> scored = model.scored(std::move(windows));
    const Answer answer = best_answer(features.context(example), scored, tokenizer, options);
    const std::string& id = example.question->id;
    other_texts += answer.text != predictions.at(id);
    const double difference = std::abs(answer.null_odds - odds.at(id).get<double>());
    other_odds += !(difference <= 1e-9);
    worst = support::worst_of(worst, difference);
    bool same = answer.n_best.size() == n_best.at(id).size();
    for (std::size_t i = 0; same && i < answer.n_best.size(); ++i)
      same = answer.n_best[i].text == n_best.at(id)[i].at("text");
    other_n_best += !same;
  }
  MESSAGE("odds differ by at most " << worst);
  CHECK(features.examples().size() == predictions.size());
  CHECK(other_texts == 0);
  CHECK(other_odds == 0);
  CHECK(other_n_best == 0);
}
