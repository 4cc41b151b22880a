// The JSON of features, line by line.
#include "bert/features/features.h"

#include <cmath>
#include <iterator>

#include "bert/inference/model.h"
#include "io/error.h"
#include "io/json.h"
#include "io/numbers.h"
#include "io/split.h"

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
  bert::check_sequences(sequences, extractor.config);
  return bert::pack(sequences, extractor.backend);
}

inference::Outputs rows_of(const Variable& x) {
  return {.width = static_cast<std::size_t>(x.shape()[x.shape().rank() - 1]), .values = ops::to_host<float>(x.value())};
}

/// What a batch of lines becomes.
struct Encoded {
  std::vector<Variable> states;  // the embeddings, then every layer
  Variable first;                // the last layer's rows of [CLS]

  inference::Outputs layer(int number) const {
    return rows_of(states[static_cast<std::size_t>(number < 0 ? std::ssize(states) + number : number + 1)]);
  }
};

Encoded encode(const std::vector<text::Sequence>& lines, std::int64_t first_index, const Extractor& extractor) {
  const bert::PackedBatch batch = pack_lines(lines, first_index, extractor);
  Encoded encoded;
  const Variable last = extractor.bert(batch, {}, {}, &encoded.states);
  encoded.first = gather_rows(last, batch.first_rows);
  return encoded;
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
  for (const std::string_view number : io::split(list, ',')) {
    const auto layer = io::number_in<int>(number);
    if (!layer || *layer < -count || *layer >= count)
      fail(Failure::usage, "--layers: expected numbers from {} to {} with commas between, got {}", -count, count - 1,
           list);
    layers.push_back(*layer);
  }
  return layers;
}

std::vector<float> line_vectors(const Extractor& extractor, const std::vector<text::Sequence>& lines,
                                const Request& request, std::int64_t first_index) {
  const NoGrad no_grad;
  const Encoded encoded = encode(lines, first_index, extractor);
  const bool by_pooler = request.pooling == inference::Pooling::pooler;
  const inference::Outputs rows =
      by_pooler ? rows_of((*extractor.bert.pooler)(encoded.first)) : encoded.layer(request.layers.front());
  std::vector<float> vectors;
  std::size_t first = 0;
  for (const text::Sequence& line : lines) {
    const std::size_t tokens = by_pooler ? 1 : line.token_ids.size();
    const std::size_t counted = request.pooling == inference::Pooling::mean ? tokens : 1;
    const auto own = std::span(rows.values).subspan(first * rows.width, counted * rows.width);
    const std::vector<double> mean = inference::mean_of_rows(own, rows.width, request.normalize);
    vectors.insert(vectors.end(), mean.begin(), mean.end());
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
  const Encoded encoded = encode(lines, first_index, extractor);
  std::vector<inference::Outputs> layers;
  for (const int layer : request.layers) layers.push_back(encoded.layer(layer));
  inference::Outputs pooled;
  if (request.pooled) pooled = rows_of((*extractor.bert.pooler)(encoded.first));

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
