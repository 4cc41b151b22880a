// The JSON of features, line by line.
#include "bert/features/features.h"

#include <charconv>
#include <cmath>
#include <iterator>

#include "io/error.h"
#include "io/json.h"

namespace bertrand::features {
namespace {

/// "[0.25,-1.5]", each value with at most 6 decimals.
void append_values(std::string& text, std::span<const float> values) {
  text += '[';
  for (const float value : values) {
    if (!std::isfinite(value)) fail(Failure::numerics, "extract: layers: expected finite values, got {}", value);
    text += fmt::format("{:.6f}", value);
    while (text.ends_with('0') && text[text.size() - 2] != '.') text.pop_back();
    text += ',';
  }
  text.back() = ']';
}

bert::PackedBatch pack_lines(const std::vector<text::Sequence>& lines, std::int64_t first_index,
                             const Extractor& extractor) {
  std::vector<bert::Sequence> sequences;
  for (const text::Sequence& line : lines)
    sequences.push_back({.token_ids = line.token_ids,
                         .token_types = line.token_types,
                         .key = static_cast<std::uint64_t>(first_index) + sequences.size()});
  bert::check_sequences(sequences, extractor.model.config);
  return bert::pack(sequences, extractor.backend);
}

struct Values {
  std::vector<float> all;  // [rows, width]
  std::size_t width = 0;
  std::span<const float> row(std::size_t i) const { return {all.data() + i * width, width}; }
};

Values values_of(const Variable& x) {
  return {ops::to_host<float>(x.value()), static_cast<std::size_t>(x.shape()[x.shape().rank() - 1])};
}

}  // namespace

text::Sequence encode_line(std::string_view line, const text::Tokenizer& tokenizer, int max_length) {
  constexpr std::string_view kBetween = " ||| ";
  const text::Vocabulary& vocabulary = tokenizer.vocabulary();
  const tasks::SpecialTokens special{.cls = vocabulary.cls_id(), .sep = vocabulary.sep_id()};
  const std::size_t between = line.rfind(kBetween);
  if (between == std::string_view::npos)
    return tasks::encode_pieces(tokenizer.encode(line), std::nullopt, special, max_length);
  return tasks::encode_pieces(tokenizer.encode(line.substr(0, between)),
                              tokenizer.encode(line.substr(between + kBetween.size())), special, max_length);
}

std::vector<int> parse_layers(const std::string& list, Dim layers_of_model) {
  const auto count = static_cast<int>(layers_of_model);
  std::vector<int> layers;
  for (const char *at = list.data(), *end = at + list.size(); at <= end; ++at) {
    int layer = 0;
    const auto [stop, error] = std::from_chars(at, end, layer);
    if (error != std::errc() || (stop != end && *stop != ',') || layer < -count || layer >= count)
      fail(Failure::usage, "--layers: expected numbers from {} to {} with commas between, got {}", -count, count - 1,
           list);
    layers.push_back(layer);
    at = stop;
  }
  return layers;
}

std::vector<float> line_vectors(const Extractor& extractor, const std::vector<text::Sequence>& lines,
                                const Request& request, std::int64_t first_index) {
  const NoGrad no_grad;
  const bert::PackedBatch batch = pack_lines(lines, first_index, extractor);
  const Model& model = extractor.model;
  std::vector<Variable> states;
  const Variable last = model.bert(batch, {}, {}, &states);
  const bool by_pooler = request.pooling == Pooling::pooler;
  const int layer = by_pooler ? -1 : request.layers.front();
  const Values rows = by_pooler ? values_of((*model.bert.pooler)(gather_rows(last, batch.first_rows)))
                                : values_of(states[layer < 0 ? states.size() + static_cast<std::size_t>(layer)
                                                             : static_cast<std::size_t>(layer) + 1]);
  std::vector<float> vectors;
  std::size_t first = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::size_t tokens = by_pooler ? 1 : lines[i].token_ids.size();
    const std::size_t counted = request.pooling == Pooling::mean ? tokens : 1;
    std::vector<double> sum(rows.width);
    for (std::size_t t = 0; t < counted; ++t)
      for (std::size_t j = 0; j < rows.width; ++j) sum[j] += rows.row(first + t)[j];
    double squares = 0;
    for (double& x : sum) {
      x /= static_cast<double>(counted);
      squares += x * x;
    }
    const double scale = request.normalize ? std::max(std::sqrt(squares), 1e-12) : 1;
    for (const double x : sum) vectors.push_back(static_cast<float>(x / scale));
    first += tokens;
  }
  for (const float x : vectors)
    if (!std::isfinite(x)) fail(Failure::numerics, "extract: embedding: expected finite values, got {}", x);
  return vectors;
}

std::string vectors_json(std::span<const float> vectors, std::size_t width, std::int64_t first_index) {
  std::string text;
  for (std::size_t i = 0; i < vectors.size() / width; ++i) {
    text += fmt::format("{{\"linex_index\": {}, \"embedding\": ", first_index + static_cast<std::int64_t>(i));
    append_values(text, vectors.subspan(i * width, width));
    text += "}\n";
  }
  return text;
}

std::string features_json(const Extractor& extractor, const std::vector<text::Sequence>& lines, const Request& request,
                          std::int64_t first_index) {
  const NoGrad no_grad;
  const bert::PackedBatch batch = pack_lines(lines, first_index, extractor);
  const Model& model = extractor.model;
  std::vector<Variable> states;  // the embeddings, then every layer
  const Variable last = model.bert(batch, {}, {}, &states);
  std::vector<Values> layers;
  for (const int layer : request.layers)
    layers.push_back(values_of(
        states[layer < 0 ? states.size() + static_cast<std::size_t>(layer) : static_cast<std::size_t>(layer) + 1]));
  Values pooled;
  if (request.pooled) pooled = values_of((*model.bert.pooler)(gather_rows(last, batch.first_rows)));

  std::string text;
  std::size_t row = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    text += fmt::format("{{\"linex_index\": {}, \"features\": [", first_index + static_cast<std::int64_t>(i));
    for (const std::int32_t id : lines[i].token_ids) {
      text += fmt::format("{{\"token\": {}, \"layers\": [", io::json_text(extractor.vocabulary.token(id)));
      for (std::size_t j = 0; j < layers.size(); ++j) {
        text += fmt::format("{}{{\"index\": {}, \"values\": ", j ? ", " : "", request.layers[j]);
        append_values(text, layers[j].row(row));
        text += '}';
      }
      text += "]}, ";
      ++row;
    }
    text.replace(text.size() - 2, 2, "]");  // there is at least [CLS]
    if (request.pooled) {
      text += ", \"pooled\": ";
      append_values(text, pooled.row(i));
    }
    text += "}\n";
  }
  return text;
}

}  // namespace bertrand::features
