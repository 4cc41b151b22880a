// A tiny BERT on a page of text: it learns to fill in the words that are masked out.
//
// What to see: sequences of different lengths are packed without padding; the head runs on masked rows only; the whole
// of pre-training is data, a forward pass, backward(), and an optimizer step.
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "bert/network/heads.h"
#include "optim/optimizer.h"
#include "tensor/backends.h"
#include "tensor/random.h"

using namespace bertrand;

namespace {

const std::vector<std::vector<std::string>> kPage = {
    {"the", "sun", "rises", "in", "the", "east", "and", "sets", "in", "the", "west"},
    {"the", "moon", "follows", "the", "earth", "and", "the", "earth", "follows", "the", "sun"},
    {"rain", "falls", "from", "clouds", "that", "rise", "from", "the", "sea"},
    {"a", "river", "carries", "the", "rain", "back", "to", "the", "sea"},
    {"in", "winter", "the", "rain", "turns", "to", "snow"},
    {"in", "spring", "the", "snow", "turns", "to", "water", "and", "feeds", "the", "river"},
};
enum Special : std::int32_t { kPad, kCls, kSep, kMask, kFirstWord };

std::string word_of(const std::map<std::string, std::int32_t>& ids, std::int32_t id) {
  for (const auto& [word, number] : ids)
    if (number == id) return word;
  return "?";
}

}  // namespace

int main() {
  const auto backend = open_cpu({.threads = 1});
  std::map<std::string, std::int32_t> ids;
  for (const auto& sentence : kPage)
    for (const auto& word : sentence) ids.emplace(word, kFirstWord + static_cast<std::int32_t>(ids.size()));

  bert::Config config;
  config.vocab_size = kFirstWord + static_cast<Dim>(ids.size());
  config.hidden_size = 48;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 4;
  config.intermediate_size = 96;
  config.max_position_embeddings = 16;
  config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0;
  bert::ForPretraining model(config);
  nn::ParameterSet parameters(model, *backend);
  optim::Optimizer optimizer(parameters, {.method = optim::Method::adamw});

  double correct = 0, masked_in_all = 0;
  for (int step = 0; step <= 300; ++step) {
    // One masked word a sentence, another one every step.
    std::vector<bert::Sequence> sequences;
    std::vector<std::int32_t> rows, labels;
    std::int32_t row = 0;
    for (std::size_t s = 0; s < kPage.size(); ++s) {
      bert::Sequence sequence{.token_ids = {kCls}, .key = s};
      for (const auto& word : kPage[s]) sequence.token_ids.push_back(ids[word]);
      sequence.token_ids.push_back(kSep);
      sequence.token_types.assign(sequence.token_ids.size(), 0);
      const std::size_t masked = 1 + (static_cast<std::size_t>(step) * 5 + s) % kPage[s].size();
      rows.push_back(row + static_cast<std::int32_t>(masked));
      labels.push_back(std::exchange(sequence.token_ids[masked], kMask));
      row += static_cast<std::int32_t>(sequence.token_ids.size());
      sequences.push_back(sequence);
    }
    const bert::PackedBatch batch = bert::pack(sequences, *backend);
    const auto count = static_cast<Dim>(rows.size());
    const std::vector<std::int32_t> always_next(sequences.size(), 0);
    const bert::ForPretraining::Targets targets{ops::from_host(rows, {count}, *backend),
                                                ops::from_host(labels, {count}, *backend),
                                                ops::from_host(always_next, {batch.sequences}, *backend),
                                                static_cast<double>(count), static_cast<double>(batch.sequences)};

    parameters.zero_gradients();
    const auto result =
        model(batch, targets, batch.randomness(static_cast<std::uint64_t>(step)), bert::ForPretraining::Keep::logits);
    backward(add(result.masked_lm_loss, result.next_sentence_loss));
    parameters.complete_gradients();
    optimizer.step(3e-3);

    const auto guesses = ops::to_host<std::int32_t>(ops::argmax(result.masked_lm_logits.value()));
    if (step > 280) {
      for (std::size_t i = 0; i < guesses.size(); ++i) correct += guesses[i] == labels[i];
      masked_in_all += static_cast<double>(guesses.size());
    }
    if (step % 100 == 0)
      std::printf("step %3d  loss %.4f  \"... %s ...\" was guessed \"%s\"\n", step,
                  ops::item(result.masked_lm_loss.value()), word_of(ids, labels[0]).c_str(),
                  word_of(ids, guesses[0]).c_str());
  }
  std::printf("words filled in over the last 20 steps: %.0f of %.0f\n", correct, masked_in_all);
  return correct / masked_in_all > 0.9 ? 0 : 1;
}
