// Which of several texts goes on or answers another: {"text", "choices"} → {"choice", "answer", "score", "scores"};
// with "text_pair" each choice is read behind it, and with "raw_scores": true the scores are logits.
#include "bert/inference/model.h"
#include "bert/network/heads.h"
#include "bert/tasks/metrics.h"
#include "io/error.h"

namespace bertrand::inference {
namespace {

class Chooser : public ModelPredictor {
 public:
  explicit Chooser(Model model) : ModelPredictor(std::move(model)), network_(model_, Head::choose, Dim{1}) {
    model_.require_pairs();
    if (model_.max_length < 5)  // [CLS] text [SEP] choice [SEP]
      fail(Failure::usage, "--max-seq-length: expected at least 5 for a text and a choice, got {}", model_.max_length);
  }

  io::Json request(std::string_view line, const std::string& where) const override {
    constexpr std::string_view kBetween = " ||| ";
    std::vector<std::string_view> parts;  // the text, and its choices
    for (std::size_t end; (end = line.find(kBetween)) != std::string_view::npos;
         line.remove_prefix(end + kBetween.size()))
      parts.push_back(line.substr(0, end));
    parts.push_back(line);
    if (parts.size() < 3)
      fail(Failure::input, "{}: expected text ||| choice ||| choice, got {}", where,
           parts.size() == 1 ? "no |||" : "one choice");
    return {{"text", parts[0]}, {"choices", std::vector(parts.begin() + 1, parts.end())}};
  }

  Query encode(const io::Json& request, const std::string& where) const override {
    io::JsonReader reader(request, {where, Failure::input});
    const std::vector<std::int32_t> text = model_.pieces(reader.text("text"), "text", where);
    const io::Json* const given = reader.find("text_pair");
    const std::string beginning = given && !given->is_null() ? reader.text("text_pair") + " " : "";
    const bool raw = reader.flag("raw_scores", false);
    const io::Json& list = reader.list("choices");
    Query query{.where = where};
    std::vector<std::string> choices;
    for (const io::Json& choice : list) {
      if (!choice.is_string()) reader.refuse("choices", "texts", &list);
      choices.push_back(choice.get<std::string>());
      Model::Input input = model_.input(text, model_.pieces(beginning + choices.back(), "choices", where));
      query.sequences.push_back(std::move(input.sequence));
      query.cut = query.cut || input.cut;
    }
    if (choices.size() < 2) fail(Failure::input, "{}: choices: expected at least two, got {}", where, choices.size());
    query.make_answer = [choices = std::move(choices), raw](std::span<const Outputs> outputs) {
      return chosen(choices, outputs, raw);
    };
    return query;
  }

  Query encode_ids(PaddedSequence given, const std::string& where) const override {
    model_.require_readable(given, where);
    return {
        .where = where, .sequences = {std::move(given.sequence)}, .make_answer = [](std::span<const Outputs> outputs) {
          const double logit = outputs[0].row(0)[0];
          return io::Json{{"logits", json_numbers({&logit, 1})}};
        }};
  }

  std::vector<Outputs> run(std::span<const bert::Sequence> sequences) const override {
    return deal_rows(forward_(sequences), std::vector<std::size_t>(sequences.size(), 1));
  }

 private:
  static io::Json chosen(const std::vector<std::string>& choices, std::span<const Outputs> outputs, bool raw) {
    std::vector<float> logits;
    for (const Outputs& output : outputs) logits.push_back(output.row(0)[0]);
    const std::vector<double> scores = raw ? std::vector<double>(logits.begin(), logits.end()) : tasks::softmax(logits);
    const std::size_t best = tasks::largest(scores, 1)[0];
    return {{"choice", best},
            {"answer", choices[best]},
            {"score", json_number(scores[best])},
            {"scores", json_numbers(scores)}};
  }

  const Loaded<bert::ForSequenceClassification> network_;
  mutable Forward forward_{model_.backend, [this](const auto& batch, const Tensor&) { return (*network_)(batch, {}); }};
};

}  // namespace

std::unique_ptr<Predictor> make_chooser(Model model) { return std::make_unique<Chooser>(std::move(model)); }

}  // namespace bertrand::inference
