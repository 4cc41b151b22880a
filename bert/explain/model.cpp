// Passes of one text through the network, with what they leave on the way.
#include "bert/explain/model.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "autograd/engine.h"
#include "autograd/ops.h"
#include "bert/network/architecture.h"
#include "bert/tasks/encode.h"
#include "bert/tasks/metrics.h"
#include "io/error.h"

namespace bertrand::explain {
namespace {

bool is_classifier(const bert::Config& config) {
  return bert::architecture_of(config) == bert::Architecture::sequence_classification;
}

/// softmax(q · kᵀ / √depth) of the head whose columns begin at `from`; q and k are [n, width].
std::vector<float> attention_of_head(const std::vector<double>& q, const std::vector<double>& k, std::size_t width,
                                     std::size_t from, std::size_t depth) {
  const std::size_t n = q.size() / width;
  std::vector<float> all(n * n);
  std::vector<double> row(n);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j)
      row[j] = std::inner_product(&q[i * width + from], &q[i * width + from] + depth, &k[j * width + from], 0.0) /
               std::sqrt(static_cast<double>(depth));
    const double most = *std::ranges::max_element(row);
    double sum = 0;
    for (double& x : row) sum += x = std::exp(x - most);
    for (std::size_t j = 0; j < n; ++j) all[i * n + j] = static_cast<float>(row[j] / sum);
  }
  return all;
}

}  // namespace

Model::Model(const std::filesystem::path& directory, Backend& backend, DType dtype,
             const bert::TokenizerFlags& tokenizer)
    : directory_(directory),
      config_(bert::read_config(directory)),
      tokenizer_(bert::read_tokenizer(directory, tokenizer, config_)),
      labels_(is_classifier(config_) ? bert::labels_of(config_, directory) : std::vector<std::string>()),
      backend_(backend),
      classifier_(is_classifier(config_)
                      ? std::make_unique<bert::ForSequenceClassification>(config_, static_cast<Dim>(labels_.size()))
                      : nullptr),
      encoder_(classifier_ ? nullptr : std::make_unique<bert::EncoderAlone>(config_, bert::PoolerLayer::absent)),
      bert_(classifier_ ? classifier_->bert : encoder_->bert),
      parameters_(bert::load_for_inference(directory, classifier_ ? static_cast<nn::Module&>(*classifier_) : *encoder_,
                                           backend, {.dtype = dtype})) {}

Model::~Model() = default;

/// As predict refuses it, and what tasks::encode_pieces() would refuse in the words of a flag that others have.
void Model::require_readable(bool pair) const {
  if (pair) bert::require_pairs(config_, directory_.string());
  const int least = pair ? 5 : 3;  // [CLS] text [SEP] pair [SEP], or [CLS] text [SEP]
  if (config_.max_position_embeddings < least)
    fail(Failure::model, "{}: max_position_embeddings: expected at least {} for {}, got {}", directory_.string(), least,
         pair ? "pairs of texts" : "texts", config_.max_position_embeddings);
}

bert::Sequence Model::encode(std::string_view text, const std::optional<std::string>& pair) const {
  require_readable(pair.has_value());
  std::vector<std::int32_t> first = tokenizer_.encode(text);
  std::optional<std::vector<std::int32_t>> second;
  if (pair) second = tokenizer_.encode(*pair);
  const int most = std::min(kMostTokens, static_cast<int>(config_.max_position_embeddings));
  const text::Vocabulary& vocabulary = tokenizer_.vocabulary();
  text::Sequence one = tasks::encode_pieces(std::move(first), std::move(second),
                                            {.cls = vocabulary.cls_id(), .sep = vocabulary.sep_id()}, most);
  return {.token_ids = std::move(one.token_ids), .token_types = std::move(one.token_types)};
}

/// x · weightᵀ + bias with the parameters of this name.
Variable Model::dense(const std::string& name, const Variable& x) const {
  const auto part = [&](const char* end) {
    const nn::ParameterSet::Segment* const segment = parameters_.find(name + end);
    check(segment != nullptr, "explain: expected a parameter {}{}, got none", name, end);
    return Variable(parameters_.value(*segment));
  };
  return linear(x, part(".weight"), part(".bias"));
}

/// The kernel of attention keeps no probabilities. They are computed again from what goes into the layer.
std::vector<std::vector<float>> Model::attention_of(std::size_t layer, const Variable& x) const {
  const std::string name = fmt::format("bert.encoder.layer.{}.attention.self.", layer);
  const std::vector<double> q = ops::to_host<double>(dense(name + "query", x).value()),
                            k = ops::to_host<double>(dense(name + "key", x).value());
  const auto width = static_cast<std::size_t>(config_.hidden_size);
  const std::size_t depth = width / static_cast<std::size_t>(config_.num_attention_heads);
  std::vector<std::vector<float>> heads;
  for (std::size_t from = 0; from < width; from += depth) heads.push_back(attention_of_head(q, k, width, from, depth));
  return heads;
}

Variable Model::logits_from(const Variable& words, const bert::PackedBatch& batch) const {
  const Variable x = bert_.embeddings.with_words(words, batch, {});
  return classifier_->classifier((*bert_.pooler)(bert_.encoder(x, batch, {}, batch.first_rows, nullptr)));
}

Look Model::look(const bert::Sequence& sequence) const {
  const bert::PackedBatch batch = bert::pack(std::span(&sequence, 1), backend_);
  Look look;
  for (const std::int32_t id : sequence.token_ids) look.tokens.emplace_back(tokenizer_.vocabulary().token(id));
  {
    const NoGrad no_graph;
    std::vector<Variable> states;
    bert_(batch, {}, {}, &states);
    for (std::size_t layer = 0; layer + 1 < states.size(); ++layer)
      std::ranges::move(attention_of(layer, states[layer]), std::back_inserter(look.attention));
  }
  if (!classifier_) return look;
  const Tensor input = bert_.embeddings.word_embeddings(batch.token_ids).value();
  const std::vector<double> values = ops::to_host<double>(input);
  look.logits = ops::to_host<double>(logits_from(Variable(input), batch).value());
  for (const std::size_t output : tasks::largest(look.logits, kOutputs)) {
    const Variable words(input, true);
    const auto column = static_cast<Dim>(output);
    backward(slice(logits_from(words, batch), 1, column, column + 1));
    const std::vector<double> gradient = ops::to_host<double>(words.grad());
    Look::Attribution one{.output = output, .logit = look.logits[output]};
    const std::size_t width = values.size() / sequence.token_ids.size();
    for (std::size_t from = 0; from < values.size(); from += width)
      one.tokens.push_back(std::inner_product(&values[from], &values[from] + width, &gradient[from], 0.0));
    look.attributions.push_back(std::move(one));
  }
  return look;
}

std::vector<float> Model::first_rows(std::span<const bert::Sequence> sequences) const {
  const NoGrad no_graph;
  constexpr std::size_t kBatch = 32;
  std::vector<float> all;
  for (std::size_t from = 0; from < sequences.size(); from += kBatch) {
    const auto some = sequences.subspan(from, std::min(kBatch, sequences.size() - from));
    const bert::PackedBatch batch = bert::pack(some, backend_);
    const std::vector<float> rows = ops::to_host<float>(bert_(batch, {}, batch.first_rows).value());
    all.insert(all.end(), rows.begin(), rows.end());
  }
  return all;
}

}  // namespace bertrand::explain
