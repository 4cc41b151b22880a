// The part of a context that answers a question: {"question", "context"} → {"answer", "score", "start", "end"}.
#include <algorithm>

#include "bert/inference/model.h"
#include "bert/network/heads.h"
#include "bert/text/utf8.h"
#include "io/error.h"

namespace bertrand::inference {
namespace {

/// A question with its context, cut into windows. It is on the heap, because its parts point at each other.
struct Question {
  Question(std::string question, std::string context, const text::Tokenizer& tokenizer,
           const tasks::SquadOptions& options)
      : paragraphs{{.context = std::move(context), .questions = {{.id = "", .question = std::move(question)}}}},
        features(paragraphs, tokenizer, options) {
    text::CachingTokenizer caching(tokenizer);
    features.windows(features.examples().front(), caching, windows);
  }
  Question(const Question&) = delete;
  Question& operator=(const Question&) = delete;

  const std::vector<tasks::SquadParagraph> paragraphs;
  const tasks::SquadFeatures features;
  std::vector<tasks::SquadWindow> windows;
};

/// As many candidates are compared as are asked for: without that nobody gets more than --n-best-size of them.
tasks::AnswerOptions compared(const Options& options) {
  tasks::AnswerOptions answers = options.answers;
  answers.n_best_size = std::max(answers.n_best_size, options.top_k);
  return answers;
}

class Answerer : public ModelPredictor {
 public:
  Answerer(Model model, const Options& options)
      : ModelPredictor(std::move(model)),
        windows_(options.windows),
        answers_(compared(options)),
        top_k_(static_cast<std::size_t>(options.top_k)),
        network_(model_, Head::answer) {
    model_.require_pairs();
    windows_.max_seq_length = model_.max_length;
    windows_.places = true;
    windows_.check();
  }

  io::Json request(std::string_view line, const std::string& where) const override {
    constexpr std::string_view kBetween = " ||| ";
    const std::size_t between = line.find(kBetween);  // the first one: contexts are long and may have anything in them
    if (between == std::string_view::npos) fail(Failure::input, "{}: expected question ||| context, got no |||", where);
    return {{"question", line.substr(0, between)}, {"context", line.substr(between + kBetween.size())}};
  }

  Query encode(const io::Json& request, const std::string& where) const override {
    io::JsonReader reader(request, {where, Failure::input});
    const std::string question = reader.text("question"), context = reader.text("context");
    const std::size_t pieces = model_.pieces(question, "question", where).size();
    model_.pieces(context, "context", where);
    const auto read = std::make_shared<Question>(question, context, model_.tokenizer, windows_);
    Query query{.where = where,
                .cut = pieces > static_cast<std::size_t>(windows_.max_query_length),
                .make_answer = [this, read](std::span<const Outputs> outputs) { return answered(*read, outputs); }};
    for (const tasks::SquadWindow& window : read->windows)
      query.sequences.push_back(bert::sequence_of(window.token_ids, window.context_begin));
    return query;
  }

  Query encode_ids(PaddedSequence given, const std::string& where) const override {
    model_.require_readable(given, where);
    return {.where = where,
            .sequences = {std::move(given.sequence)},
            .padding = given.padding,
            .make_answer = [padding = given.padding](std::span<const Outputs> outputs) {
              return logits(outputs[0], padding);
            }};
  }

  /// A row (start, end) for each token.
  std::vector<Outputs> run(std::span<const bert::Sequence> sequences) const override {
    return deal_rows(forward_(sequences), lengths(sequences));
  }

 private:
  static io::Json logits(const Outputs& outputs, std::size_t padding) {
    constexpr double kHidden = -10'000;  // no answer begins or ends in padding
    std::vector<double> start, end;
    for (std::size_t i = 0; i < outputs.rows(); ++i) {
      start.push_back(outputs.row(i)[0]);
      end.push_back(outputs.row(i)[1]);
    }
    for (std::vector<double>* const of : {&start, &end}) of->resize(outputs.rows() + padding, kHidden);
    return {{"start_logits", json_numbers(start)}, {"end_logits", json_numbers(end)}};
  }

  io::Json answered(const Question& question, std::span<const Outputs> outputs) const {
    std::vector<tasks::ScoredWindow> scored;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      scored.push_back({.window = question.windows[i], .start = {}, .end = {}});
      for (std::size_t row = 0; row < outputs[i].rows(); ++row) {
        scored.back().start.push_back(outputs[i].row(row)[0]);
        scored.back().end.push_back(outputs[i].row(row)[1]);
      }
    }
    const tasks::SquadContext& context = question.features.context(question.features.examples().front());
    const tasks::Answer found = tasks::best_answer(context, scored, model_.tokenizer, answers_);
    const auto chosen = std::ranges::find(found.n_best, found.text, &tasks::AnswerCandidate::text);
    io::Json answer = candidate(*chosen, question);
    if (answers_.version_2) answer["null_odds"] = json_number(found.null_odds);
    io::Json& others = answer["n_best"] = io::Json::array();
    for (std::size_t i = 0; i < std::min(found.n_best.size(), top_k_); ++i)
      others.push_back(candidate(found.n_best[i], question));
    return answer;
  }

  /// The part of the context. Without a place it is no answer, however the script calls that.
  static io::Json candidate(const tasks::AnswerCandidate& found, const Question& question) {
    const std::string_view context = question.paragraphs.front().context;
    const std::int64_t start =
        found.place.empty()
            ? 0
            : text::count_code_points({context.data(), static_cast<std::size_t>(found.place.data() - context.data())});
    return {{"answer", std::string(found.place)},
            {"score", json_number(found.probability)},
            {"start", start},
            {"end", start + text::count_code_points(found.place)}};
  }

  tasks::SquadOptions windows_;
  const tasks::AnswerOptions answers_;
  const std::size_t top_k_;
  const Loaded<bert::ForQuestionAnswering> network_;
  mutable Forward forward_{model_.backend, [this](const auto& batch, const Tensor&) { return (*network_)(batch, {}); }};
};

}  // namespace

std::unique_ptr<Predictor> make_answerer(Model model, const Options& options) {
  return std::make_unique<Answerer>(std::move(model), options);
}

}  // namespace bertrand::inference
