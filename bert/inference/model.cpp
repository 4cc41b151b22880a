// Models read and loaded, and the arithmetic behind scores.
#include "bert/inference/model.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "bert/directory/model_directory.h"
#include "bert/tasks/encode.h"
#include "io/error.h"
#include "nn/weights.h"

namespace bertrand::inference {

std::vector<std::int32_t> Model::pieces(std::string_view text, std::string_view key, const std::string& where) const {
  std::vector<std::int32_t> ids = tokenizer.encode(text);
  if (ids.empty()) fail(Failure::input, "{}: {}: expected at least one token, got none", where, key);
  return ids;
}

Model::Input Model::input(std::vector<std::int32_t> pieces, std::optional<std::vector<std::int32_t>> pair) const {
  const text::Vocabulary& vocabulary = tokenizer.vocabulary();
  const std::size_t whole = pieces.size() + (pair ? pair->size() + 3 : 2);
  text::Sequence one = tasks::encode_pieces(std::move(pieces), std::move(pair),
                                            {.cls = vocabulary.cls_id(), .sep = vocabulary.sep_id()}, max_length);
  const bool cut = one.token_ids.size() < whole;
  return {.sequence = {.token_ids = std::move(one.token_ids), .token_types = std::move(one.token_types)}, .cut = cut};
}

Model::Input Model::text_or_pair(io::JsonReader& request, const std::string& where) const {
  std::vector<std::int32_t> text = pieces(request.text("text"), "text", where);
  const io::Json* const given = request.find("text_pair");
  if (!given || given->is_null()) return input(std::move(text));
  if (config.type_vocab_size < 2)  // of the request, not of the model, which reads its other texts
    fail(Failure::input, "{}: text_pair: expected none, since the model has one token type", where);
  if (max_length < 5)  // [CLS] text [SEP] pair [SEP]
    fail(Failure::input, "{}: text_pair: expected none, since a pair needs 5 tokens and {} are read", where,
         max_length);
  return input(std::move(text), pieces(request.text("text_pair"), "text_pair", where));
}

void Model::require_pairs() const { bert::require_pairs(config, directory.string()); }

void Model::require_readable(const PaddedSequence& given, const std::string& where) const {
  const bert::Sequence& sequence = given.sequence;
  const std::size_t places = sequence.token_ids.size() + given.padding;
  const auto check = [&](const std::vector<std::int32_t>& values, std::string_view key, Dim most) {
    for (std::size_t i = 0; i < values.size(); ++i)
      if (values[i] < 0 || values[i] >= most)
        fail(Failure::input, "{}: {}: expected numbers from 0 to {}, got {} at place {}", where, key, most - 1,
             values[i], i);
  };
  if (sequence.token_ids.empty() || places > static_cast<std::size_t>(max_ids))
    fail(Failure::input, "{}: input_ids: expected 1 to {} ids, got {}", where, max_ids,
         sequence.token_ids.empty() ? 0 : places);
  if (sequence.token_types.size() != sequence.token_ids.size())
    fail(Failure::input, "{}: token_type_ids: expected {}, one for each id, got {}", where, sequence.token_ids.size(),
         sequence.token_types.size());
  check(sequence.token_ids, "input_ids", std::min<Dim>(config.vocab_size, tokenizer.vocabulary().size()));
  check(sequence.token_types, "token_type_ids", config.type_vocab_size);
}

nn::ParameterSet load_parameters(const Model& model, Head head, nn::Module& network) {
  const auto require_head = [&](const nn::LoadReport& report) {
    if (report.loaded.empty()) return;  // not the head alone: it is refused as no BERT
    std::vector<std::string> of_head;
    for (const std::string& name : report.missing)
      if (!name.starts_with("bert.embeddings.") && !name.starts_with("bert.encoder.")) of_head.push_back(name);
    if (!of_head.empty())
      fail(Failure::model,
           "{}: expected the tensors that --task {} needs, got none for {}; hint: was it trained for that?",
           bert::weights_file(model.directory).string(), io::name_in(heads(), head), nn::joined(of_head));
  };
  return bert::load_for_inference(model.directory, network, model.backend,
                                  {.dtype = model.dtype, .strict = model.strict, .check = require_head});
}

std::vector<Outputs> deal_rows(const Tensor& values, std::span<const std::size_t> counts) {
  const std::vector<float> all = ops::to_host<float>(values);
  const auto width = static_cast<std::size_t>(values.shape()[1]);
  std::vector<Outputs> dealt;
  auto from = all.begin();
  for (const std::size_t count : counts) {
    const auto to = from + static_cast<std::ptrdiff_t>(count * width);
    dealt.push_back({.width = width, .values = {from, to}});
    from = to;
  }
  return dealt;
}

std::vector<double> mean_of_rows(std::span<const float> rows, std::size_t width, bool unit) {
  std::vector<double> mean(width);
  for (std::size_t first = 0; first < rows.size(); first += width)
    for (std::size_t i = 0; i < width; ++i) mean[i] += rows[first + i];
  double squares = 0;
  for (double& x : mean) {
    x /= static_cast<double>(rows.size() / width);
    squares += x * x;
  }
  const double length = unit ? std::max(std::sqrt(squares), 1e-12) : 1;
  for (double& x : mean) x /= length;
  return mean;
}

std::vector<std::size_t> lengths(std::span<const bert::Sequence> sequences) {
  std::vector<std::size_t> lengths;
  for (const bert::Sequence& sequence : sequences) lengths.push_back(sequence.token_ids.size());
  return lengths;
}

io::Json json_number(double value) {
  char digits[32];
  const char* const end = std::to_chars(digits, digits + sizeof digits, static_cast<float>(value)).ptr;
  // The writer of JSON finds the shortest digits of a double, which are these, but for a few numbers in a thousand:
  // they get up to 17 digits, which read back to the same f32.
  double shortest = 0;
  std::from_chars(digits, end, shortest);
  return shortest;
}

io::Json json_numbers(std::span<const double> values) {
  io::Json numbers = io::Json::array();
  for (const double value : values) numbers.push_back(json_number(value));
  return numbers;
}

}  // namespace bertrand::inference
