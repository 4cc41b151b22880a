#include "bert/explain/explanation.h"

#include <algorithm>
#include <cmath>

#include "bert/tasks/metrics.h"
#include "io/shortened.h"

namespace bertrand::explain {
namespace {

constexpr std::size_t kNeighbours = 5;

/// With as many digits as a picture needs.
double rounded(double x, double digits = 1e4) { return std::round(x * digits) / digits; }

/// A word is a piece and the pieces after it that begin with ##: [its first token, the one after its last] of each.
io::Json words_of(const std::vector<std::string>& tokens) {
  io::Json words = io::Json::array();
  for (std::size_t from = 0, to = 0; from < tokens.size(); from = to) {
    for (to = from + 1; to < tokens.size() && tokens[to].starts_with("##");) ++to;
    words.push_back({from, to});
  }
  return words;
}

/// At most `most` of them, evenly spread.
std::vector<Text> spread(const std::vector<Text>& all, std::size_t most) {
  const std::size_t count = std::min(all.size(), most);
  std::vector<Text> some;
  for (std::size_t i = 0; i < count; ++i) some.push_back(all[i * all.size() / count]);
  return some;
}

io::Json attention_json(const std::vector<float>& attention, std::size_t whole, std::size_t shown) {
  io::Json thousandths = io::Json::array();
  for (std::size_t i = 0; i < shown; ++i)
    for (std::size_t j = 0; j < shown; ++j) thousandths.push_back(std::lround(1000 * attention[i * whole + j]));
  return thousandths;
}

/// −Σ p · log₂ p of one row.
double entropy_of(std::span<const float> row) {
  double sum = 0;
  for (const float p : row)
    if (p > 0) sum -= p * std::log2(static_cast<double>(p));
  return sum;
}

}  // namespace

Explanation::Explanation(const Model& model, const std::vector<Text>& texts, const std::vector<Text>& rows)
    : layers_(static_cast<std::size_t>(model.config().num_hidden_layers)),
      heads_(static_cast<std::size_t>(model.config().num_attention_heads)),
      labels_(model.labels()),
      problem_type_(model.config().problem_type),
      texts_(texts.begin(), texts.begin() + static_cast<std::ptrdiff_t>(std::min(texts.size(), kTexts))),
      rows_(spread(rows, kRows)),
      texts_given_(texts.size()),
      rows_given_(rows.size()) {
  for (const Text& one : texts_) looks_.push_back(model.look(model.encode(one.text, one.pair)));
  if (rows_.size() < 3) return;
  std::vector<bert::Sequence> sequences;
  for (const Text& one : rows_) sequences.push_back(model.encode(one.text, one.pair));
  points_ = model.first_rows(sequences);
  const std::size_t width = points_.size() / sequences.size();
  plane_ = principal_plane(points_, width);
  near_ = nearest(points_, width, kNeighbours);
}

io::Json Explanation::text_json(std::size_t i, std::size_t tokens) const {
  const Look& look = looks_[i];
  const std::size_t whole = look.tokens.size(), shown = std::min(whole, tokens);
  io::Json attention = io::Json::array();
  for (std::size_t layer = 0; layer < layers_; ++layer) {
    attention.push_back(io::Json::array());
    for (std::size_t head = 0; head < heads_; ++head)
      attention.back().push_back(attention_json(look.attention[layer * heads_ + head], whole, shown));
  }
  io::Json json{{"tokens", look.tokens},
                {"words", words_of(look.tokens)},
                {"shown", shown},
                {"attention", std::move(attention)},
                {"outputs", io::Json::array()}};
  const bool one_of_them =
      problem_type_ != "regression" && problem_type_ != "multi_label_classification" && look.logits.size() > 1;
  const std::vector<float> logits(look.logits.begin(), look.logits.end());
  const std::vector<double> shares = one_of_them ? tasks::softmax(logits) : std::vector<double>();
  for (const Look::Attribution& one : look.attributions) {
    io::Json values = io::Json::array();
    for (const double value : one.tokens) values.push_back(rounded(value, 1e6));
    io::Json output{{"label", labels_[one.output]}, {"logit", rounded(one.logit)}, {"tokens", std::move(values)}};
    if (one_of_them) output["probability"] = rounded(shares[one.output], 1e6);
    json["outputs"].push_back(std::move(output));
  }
  return json;
}

io::Json Explanation::entropy() const {
  io::Json layers = io::Json::array();
  for (std::size_t layer = 0; layer < layers_; ++layer) {
    io::Json heads = io::Json::array();
    for (std::size_t head = 0; head < heads_; ++head) {
      double sum = 0, rows = 0;
      for (const Look& look : looks_) {
        const std::size_t n = look.tokens.size();
        const std::span<const float> all = look.attention[layer * heads_ + head];
        for (std::size_t i = 0; i < n; ++i, ++rows) sum += entropy_of(all.subspan(i * n, n));
      }
      heads.push_back(rounded(sum / rows));
    }
    layers.push_back(std::move(heads));
  }
  return layers;
}

io::Json Explanation::map() const {
  io::Json json{{"shares", {rounded(plane_.shares[0]), rounded(plane_.shares[1])}}};
  for (const char* name : {"x", "y", "text", "label", "prediction", "near"}) json[name] = io::Json::array();
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    json["x"].push_back(rounded(plane_.x[i]));
    json["y"].push_back(rounded(plane_.y[i]));
    std::string text = rows_[i].text;
    if (rows_[i].pair) text += " | " + *rows_[i].pair;
    json["text"].push_back(io::shortened(text, 240));
    json["label"].push_back(rows_[i].label);
    json["prediction"].push_back(rows_[i].prediction);
    io::Json near = io::Json::array();
    for (const Near& one : near_[i]) near.push_back({one.point, rounded(one.cosine)});
    json["near"].push_back(std::move(near));
  }
  return json;
}

io::Json Explanation::json(std::size_t tokens) const {
  io::Json json{{"layers", layers_}, {"heads", heads_}, {"texts", io::Json::array()}};
  for (std::size_t i = 0; i < looks_.size(); ++i) json["texts"].push_back(text_json(i, tokens));
  if (!looks_.empty()) json["entropy"] = entropy();
  if (rows_.size() >= 3) json["map"] = map();
  json["bounds"] = {{"texts", texts_.size()},    {"texts_given", texts_given_}, {"rows", rows_.size()},
                    {"rows_given", rows_given_}, {"tokens_shown", tokens},      {"tokens_read", Model::kMostTokens}};
  return json;
}

void Explanation::write_projector(io::Files& files, const std::filesystem::path& directory) const {
  if (std::error_code ignored; !std::filesystem::is_directory(directory, ignored)) files.make_directory(directory);
  const auto one_line = [](std::string text) {
    std::ranges::replace_if(
        text, [](char c) { return c == '\t' || c == '\n' || c == '\r'; }, ' ');
    return text.empty() ? std::string("-") : text;
  };
  std::string vectors, metadata = "text\tlabel\tprediction\n";
  const std::size_t width = rows_.empty() ? 0 : points_.size() / rows_.size();
  for (std::size_t i = 0; i < points_.size(); ++i)
    vectors += fmt::format("{}{}", points_[i], (i + 1) % width == 0 ? '\n' : '\t');
  for (std::size_t i = 0; width > 0 && i < rows_.size(); ++i)
    metadata += fmt::format("{}\t{}\t{}\n", one_line(io::shortened(rows_[i].text, 240)), one_line(rows_[i].label),
                            one_line(rows_[i].prediction));
  io::replace_file(files, directory / "embeddings.tsv", vectors);
  io::replace_file(files, directory / "metadata.tsv", metadata);
  io::replace_file(files, directory / "projector_config.pbtxt",
                   "embeddings {\n  tensor_name: \"[CLS]\"\n  tensor_path: \"embeddings.tsv\"\n"
                   "  metadata_path: \"metadata.tsv\"\n}\n");
}

}  // namespace bertrand::explain
