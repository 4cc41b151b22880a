// A text or a pair of texts to labels: {"text", "text_pair"} → {"label", "score", "scores"}; with "raw_scores": true
// the scores are logits.
#include <algorithm>

#include "autograd/variable.h"
#include "bert/inference/model.h"
#include "bert/network/heads.h"
#include "bert/tasks/metrics.h"
#include "bert/tasks/task.h"
#include "io/error.h"

namespace bertrand::inference {

tasks::Kind kind_of_classifier(const bert::Config& config, std::size_t labels, const std::filesystem::path& model) {
  using enum tasks::Kind;
  const io::Choices<tasks::Kind>& types = tasks::problem_types();
  const auto kind = io::find_choice(types, config.problem_type);
  if (kind == classification && labels == 1)  // the share of one label among one is 1, whatever the text
    fail(Failure::model,
         "{}: problem_type: expected two labels or more for {}, got one; hint: {} gives its output as it is, {} a "
         "probability",
         bert::config_file(model).string(), config.problem_type, io::name_in(types, regression),
         io::name_in(types, multi_label));
  if (kind) return *kind;
  if (!config.problem_type.empty())
    fail(Failure::model, "{}: problem_type: expected {}, {} or {}, got {}", bert::config_file(model).string(),
         io::name_in(types, classification), io::name_in(types, regression), io::name_in(types, multi_label),
         io::shown(config.problem_type));
  // One output that is not said to be a number is a label that holds or not: transformers' pipeline and cross-encoders.
  return labels == 1 ? multi_label : classification;
}

namespace {

class Classifier : public ModelPredictor {
 public:
  explicit Classifier(Model model)
      : ModelPredictor(std::move(model)),
        labels_(model_.config.labels),
        kind_(kind_of_classifier(model_.config, labels_.size(), model_.directory)),
        network_(model_, Head::classify, static_cast<Dim>(labels_.size())) {}

  io::Json request(std::string_view line, const std::string&) const override {
    constexpr std::string_view kBetween = " ||| ";
    const std::size_t between = line.rfind(kBetween);  // the last one, as in google-research/bert
    if (between == std::string_view::npos) return {{"text", line}};
    return {{"text", line.substr(0, between)}, {"text_pair", line.substr(between + kBetween.size())}};
  }

  Query encode(const io::Json& request, const std::string& where) const override {
    io::JsonReader reader(request, {where, Failure::input});
    Model::Input input = model_.text_or_pair(reader, where);
    const bool raw = reader.flag("raw_scores", false);
    return {.where = where,
            .sequences = {std::move(input.sequence)},
            .cut = input.cut,
            .make_answer = [this, raw](std::span<const Outputs> outputs) { return labelled(outputs[0].row(0), raw); }};
  }

  Query encode_ids(PaddedSequence given, const std::string& where) const override {
    model_.require_readable(given, where);
    return {.where = where,
            .sequences = {std::move(given.sequence)},
            .make_answer = [this](std::span<const Outputs> outputs) { return probabilities(outputs[0].row(0)); }};
  }

  std::vector<Outputs> run(std::span<const bert::Sequence> sequences) const override {
    return deal_rows(forward_(sequences), std::vector<std::size_t>(sequences.size(), 1));
  }

 private:
  io::Json probabilities(std::span<const float> logits) const {
    return {{kind_ == tasks::Kind::regression ? "logits" : "probabilities",
             json_numbers(tasks::probabilities(kind_, logits))}};
  }

  io::Json labelled(std::span<const float> logits, bool raw) const {
    const std::vector<double> all =
        raw ? std::vector<double>(logits.begin(), logits.end()) : tasks::probabilities(kind_, logits);
    const std::size_t best = tasks::largest(all, 1)[0];
    io::Json answer{{"label", labels_[best]}, {"score", json_number(all[best])}};
    if (kind_ == tasks::Kind::multi_label) {
      io::Json& holding = answer["labels"] = io::Json::array();
      for (std::size_t i = 0; i < all.size(); ++i)
        if (all[i] >= (raw ? 0 : 0.5)) holding.push_back(labels_[i]);
    }
    io::Json by_label = io::Json::object();
    for (std::size_t i = 0; i < all.size(); ++i) io::append(by_label, labels_[i], json_number(all[i]));
    answer["scores"] = std::move(by_label);
    return answer;
  }

  const std::vector<std::string> labels_;
  const tasks::Kind kind_;
  const Loaded<bert::ForSequenceClassification> network_;
  mutable Forward forward_{model_.backend, [this](const auto& batch, const Tensor&) { return (*network_)(batch, {}); }};
};

}  // namespace

std::unique_ptr<Predictor> make_classifier(Model model) { return std::make_unique<Classifier>(std::move(model)); }

}  // namespace bertrand::inference
