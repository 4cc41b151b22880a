// What predictors compute against PyTorch's figures, and what they answer against Google's files.
#include <doctest/doctest.h>

#include "bert/inference/open.h"
#include "bert/network/golden.h"
#include "bert/tasks/squad_file.h"
#include "bert/text/python_text.h"
#include "support/gzip.h"
#include "support/program.h"

using namespace bertrand;
using golden::Case;
using inference::Head;
using inference::Outputs;

namespace {

const std::string kVocabulary = paths::shared + "/data/vocab/bert-base-uncased/vocab.txt";

/// 120 tokens, as the golden models have, of which number `mask` is [MASK].
std::string numbered_vocabulary(int mask = 4) {
  std::string text = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n";
  for (int id = 4; id < 120; ++id) text += id == mask ? "[MASK]\n" : "w" + std::to_string(id) + "\n";
  return text;
}

std::unique_ptr<inference::Predictor> open_golden(const Case& golden, Head head, const inference::Options& options,
                                                  int mask = 4) {
  const support::TemporaryDirectory directory;
  support::write_text(directory / "vocab.txt", numbered_vocabulary(mask));
  return inference::open(
      {.directory = golden.directory, .tokenizer = {.vocab_file = directory / "vocab.txt"}, .backend = golden::cpu()},
      head, options);
}

/// Column `column` of the outputs for all sequences, or all columns.
std::vector<double> joined(const std::vector<Outputs>& outputs, std::optional<std::size_t> column = {}) {
  std::vector<double> all;
  for (const Outputs& one : outputs)
    for (std::size_t i = 0; i < one.values.size(); ++i)
      if (!column || i % one.width == *column) all.push_back(one.values[i]);
  return all;
}

/// Notes the lengths of each batch, and says of a sequence its first id.
class Recorder : public inference::Predictor {
 public:
  io::Json request(std::string_view, const std::string&) const override { return {}; }
  inference::Query encode(const io::Json&, const std::string&) const override { return {}; }
  inference::Query encode_ids(inference::PaddedSequence, const std::string&) const override { return {}; }
  std::string_view token(std::int32_t) const override { return ""; }
  std::vector<Outputs> run(std::span<const bert::Sequence> sequences) const override {
    std::vector<Outputs> all;
    batches.emplace_back();
    for (const bert::Sequence& one : sequences) {
      batches.back().push_back(one.token_ids.size());
      all.push_back({.width = 1, .values = {static_cast<float>(one.token_ids[0])}});
    }
    return all;
  }
  mutable std::vector<std::vector<std::size_t>> batches;
};

/// " ".join(text.split())
std::string cleaned(const std::string& text) {
  std::string joined;
  for (const std::u32string& word : text::python_split(text::to_code_points(text)))
    joined.append(joined.empty() ? "" : " ").append(text::to_utf8(word));
  return joined;
}

}  // namespace

TEST_CASE("a predictor's outputs for classes equal PyTorch's") {
  for (const char* folder : {"classification", "regression", "multi_label"}) {
    if (!golden::present(folder)) return;
    CAPTURE(folder);
    const Case golden(folder);
    const auto predictor = open_golden(golden, Head::classify, {});
    const auto outputs = predictor->run(golden.sequences());
    CHECK(outputs.size() == golden.sequences().size());
    CHECK(golden::greatest_difference(joined(outputs), golden.figures("logits")) <= 2e-5);
  }
}

TEST_CASE("a predictor's outputs for answers equal PyTorch's") {
  if (!golden::present("question_answering")) return;
  const Case golden("question_answering");
  const auto predictor = open_golden(golden, Head::answer, {.windows = {.max_query_length = 8}});
  const auto outputs = predictor->run(golden.sequences());
  CHECK(golden::greatest_difference(joined(outputs, 0), golden.figures("start_logits")) <= 2e-5);
  CHECK(golden::greatest_difference(joined(outputs, 1), golden.figures("end_logits")) <= 2e-5);
}

TEST_CASE("a predictor's outputs for tokens equal PyTorch's") {
  if (!golden::present("token")) return;
  const Case golden("token");
  const auto outputs = open_golden(golden, Head::tokens, {})->run(golden.sequences());
  CHECK(outputs.size() == golden.sequences().size());
  CHECK(golden::greatest_difference(joined(outputs), golden.figures("logits")) <= 2e-5);
}

TEST_CASE("a predictor's outputs for masked words equal PyTorch's") {
  if (!golden::present("pretraining_gelu")) return;
  const Case golden("pretraining_gelu");
  const std::vector<double> logits = golden.figures("masked_lm_logits");
  // The figures are of nine words of the sequences: each becomes [MASK] by a vocabulary that calls its number so.
  for (std::size_t i = 0; i < golden.info["masked"].size(); ++i) {
    const std::size_t s = golden.info["masked"][i][0], position = golden.info["masked"][i][1];
    const bert::Sequence sequence = golden.sequences()[s];
    const std::int32_t id = sequence.token_ids[position];
    const auto predictor = open_golden(golden, Head::fill_mask, {}, id);
    const Outputs outputs = predictor->run(std::vector{sequence}).at(0);
    CHECK(static_cast<std::ptrdiff_t>(outputs.rows()) == std::ranges::count(sequence.token_ids, id));
    const auto earlier =
        std::count(sequence.token_ids.begin(), sequence.token_ids.begin() + static_cast<std::ptrdiff_t>(position), id);
    const auto row = outputs.row(static_cast<std::size_t>(earlier));
    const std::vector<double> expected(logits.begin() + static_cast<std::ptrdiff_t>(i * 120),
                                       logits.begin() + static_cast<std::ptrdiff_t>(i * 120 + 120));
    CHECK(golden::greatest_difference({row.begin(), row.end()}, expected) <= 2e-5);
  }
}

TEST_CASE("embeddings of real weights equal PyTorch's rows") {
  const std::filesystem::path directory(paths::minilm);
  if (!golden::present("minilm")) return;
  if (!std::filesystem::exists(directory / "model.safetensors")) {
    MESSAGE("SKIPPED: " << paths::minilm << " is not there; hint: ../shared/data/get_minilm.sh " << paths::minilm);
    return;
  }
  const Case golden("minilm");
  std::vector<bert::Sequence> sequences;
  for (const auto& text : golden.info["cases"])
    sequences.push_back({.token_ids = text["token_ids"], .token_types = text["token_types"]});
  using enum inference::Pooling;
  for (const auto& [pooling, name] : {std::pair(mean, "mean_of_rows"), {cls, "first_row"}, {pooler, "pooled"}}) {
    CAPTURE(name);
    const auto predictor =
        inference::open({.directory = directory, .backend = golden::cpu()}, Head::embed, {.pooling = pooling});
    const inference::Query query = predictor->encode({{"text", "a"}}, "here");
    const auto outputs = predictor->run(sequences);
    for (std::size_t s = 0; s < sequences.size(); ++s) {
      const std::vector<double> embedding = inference::answer(query, std::span(outputs).subspan(s, 1)).at("embedding");
      CHECK(golden::greatest_difference(embedding, golden.figures(std::to_string(s) + "." + name)) <= 2e-5);
    }
  }
}

TEST_CASE("a predictor answers questions as Google's script does and says where the answers stand") {
  if (!golden::present("squad2_predict")) return;
  const std::string directory = golden::path_of("squad2_predict").string();
  const auto predictor = inference::open(
      {.directory = directory, .tokenizer = {.vocab_file = kVocabulary}, .backend = golden::cpu(), .dtype = DType::f64},
      Head::answer,
      {.max_seq_length = 128,
       .top_k = 20,  // more of them would be compared than the script does
       .windows = {.doc_stride = 64, .max_query_length = 24},
       .answers = {.version_2 = true, .null_score_diff_threshold = 3.956}});
  const auto paragraphs = tasks::read_squad(paths::shared + "/data/squad/small/dev-v2.json");
  constexpr std::size_t kAsked = 300;  // of 1,859, all of which test_finetune_golden.cpp asks
  std::vector<inference::Query> queries;
  std::vector<std::pair<std::string, std::u32string>> asked;  // ids and contexts
  for (const tasks::SquadParagraph& paragraph : paragraphs)
    for (const tasks::SquadQuestion& question : paragraph.questions) {
      if (queries.size() == kAsked) break;
      queries.push_back(predictor->encode({{"question", question.question}, {"context", paragraph.context}}, "here"));
      asked.emplace_back(question.id, text::to_code_points(paragraph.context));
    }
  // The script says "empty" if no candidate is left.
  const auto text_of = [](const std::string& text) { return text == "empty" ? "" : text; };
  const auto predictions = nlohmann::json::parse(support::read_text(directory + "/predictions.json")),
             odds = nlohmann::json::parse(support::read_text(directory + "/null_odds.json")),
             n_best = nlohmann::json::parse(support::unpacked(directory + "/nbest_predictions.json.gz"));
  std::size_t answered = 0, other_texts = 0, other_n_best = 0, other_odds = 0, other_places = 0, compared = 0;
  inference::run_all(*predictor, queries, 8192, [&](std::size_t i, std::span<const Outputs> outputs) {
    const io::Json answer = inference::answer(queries[i], outputs);
    const auto& [id, context] = asked[i];
    ++answered;
    other_texts += cleaned(answer.at("answer")) != text_of(predictions.at(id));
    other_odds += std::abs(answer.at("null_odds").get<double>() - odds.at(id).get<double>()) > 1e-5;
    // The script merges equal texts; here each place is a candidate. Where the script does not find the words of an
    // answer, it takes all that stands between the blanks around them. All other questions have its candidates.
    const io::Json &own = answer.at("n_best"), &scripts = n_best.at(id);
    std::set<std::string> texts;
    bool is_wider = false, same = own.size() == std::min<std::size_t>(scripts.size(), 20);
    for (std::size_t k = 0; k < own.size(); ++k) {
      const std::string text = cleaned(own[k].at("answer"));
      texts.insert(text);
      const std::string theirs = k < scripts.size() ? text_of(scripts[k].at("text")) : "";
      is_wider |= !text.empty() && text != theirs && theirs.find(text) != std::string::npos;
      same = same && text == theirs &&
             std::abs(own[k].at("score").get<double>() - scripts[k].at("probability").get<double>()) < 1e-6;
      const std::size_t start = own[k].at("start"), end = own[k].at("end");
      other_places += text::to_utf8(std::u32string_view(context).substr(start, end - start)) != own[k].at("answer");
    }
    const bool is_distinct = texts.size() == own.size();
    compared += is_distinct && !is_wider;
    other_n_best += is_distinct && !is_wider && !same;
  });
  CHECK(answered == kAsked);
  CHECK(other_texts == 0);
  CHECK(compared > answered / 2);
  CHECK(other_n_best == 0);
  CHECK(other_odds == 0);
  CHECK(other_places == 0);
}

TEST_CASE(
    "batches are as full as they may be, a sequence that is longer has its own, and each query gets its outputs") {
  std::vector<inference::Query> queries(4);
  const std::vector<std::vector<std::size_t>> lengths = {{3, 10}, {4}, {6, 1}, {12}};
  for (std::size_t q = 0; q < lengths.size(); ++q)
    for (std::size_t s = 0; s < lengths[q].size(); ++s)
      queries[q].sequences.push_back(
          {.token_ids = std::vector<std::int32_t>(lengths[q][s], static_cast<std::int32_t>(10 * q + s)),
           .token_types = std::vector<std::int32_t>(lengths[q][s])});
  const Recorder recorder;
  std::vector<std::pair<std::size_t, std::vector<float>>> taken;
  inference::run_all(recorder, queries, 10, [&](std::size_t query, std::span<const Outputs> outputs) {
    taken.emplace_back(query, std::vector<float>{});
    for (const Outputs& one : outputs) taken.back().second.push_back(one.values.at(0));
  });
  CHECK(recorder.batches == std::vector<std::vector<std::size_t>>{{12}, {10}, {6, 4}, {3, 1}});
  CHECK(taken ==
        std::vector<std::pair<std::size_t, std::vector<float>>>{{3, {30}}, {1, {10}}, {0, {0, 1}}, {2, {20, 21}}});
}
