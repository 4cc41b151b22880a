// A tiny BERT on a page of text: it learns to fill in the words that are masked out.
//
// What to see: sequences of different lengths are packed without padding; the head runs on masked rows only; the whole
// of pre-training is data, a forward pass, backward(), and an optimizer step.
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "autograd/operators.h"
#include "bert/network/heads.h"
#include "optim/optimizer.h"
#include "tensor/backends.h"

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
constexpr std::int32_t kCls = 1, kSep = 2, kMask = 3, kFirstWord = 4;  // 0 is [PAD], which packing does not need

using Vocabulary = std::map<std::string, std::int32_t>;

Vocabulary number_words() {
  Vocabulary ids;
  for (const auto& sentence : kPage)
    for (const auto& word : sentence) ids.emplace(word, kFirstWord + static_cast<std::int32_t>(ids.size()));
  return ids;
}

std::string word_of(const Vocabulary& ids, std::int32_t id) {
  for (const auto& [word, number] : ids)
    if (number == id) return word;
  return "?";
}

/// The sentences of the page, one word of each masked, another one in every step.
struct MaskedPage {
  std::vector<bert::Sequence> sequences;
  std::vector<std::int32_t> rows, labels;  ///< of each masked word: its row in the packed batch, and what it was

  MaskedPage(const Vocabulary& ids, std::size_t step) {
    std::size_t first_row = 0;
    for (std::size_t s = 0; s < kPage.size(); ++s) {
      std::vector<std::int32_t> tokens{kCls};
      for (const auto& word : kPage[s]) tokens.push_back(ids.at(word));
      tokens.push_back(kSep);
      const std::size_t masked = 1 + (step * 5 + s) % kPage[s].size();
      rows.push_back(static_cast<std::int32_t>(first_row + masked));
      labels.push_back(std::exchange(tokens[masked], kMask));
      first_row += tokens.size();
      // The key names the sequence in random draws (dropout); token type 0: the first segment of a pair.
      sequences.push_back({.token_ids = tokens, .token_types = std::vector<std::int32_t>(tokens.size()), .key = s});
    }
  }
  bert::ForPretraining::Targets targets(Backend& backend) const {
    const auto on_device = [&](const std::vector<std::int32_t>& values) {
      return ops::from_host(values, {static_cast<Dim>(values.size())}, backend);
    };
    return {.masked_rows = on_device(rows),
            .masked_labels = on_device(labels),
            .next_sentence = on_device(std::vector<std::int32_t>(sequences.size())),  // 0: always the next one
            .masked_count = static_cast<double>(rows.size()),
            .sequence_count = static_cast<double>(sequences.size())};
  }
};

bert::Config tiny(std::size_t words) {
  return {.vocab_size = kFirstWord + static_cast<Dim>(words),
          .hidden_size = 48,
          .num_hidden_layers = 2,
          .num_attention_heads = 4,
          .intermediate_size = 96,
          .hidden_dropout_prob = 0,
          .attention_probs_dropout_prob = 0,
          .max_position_embeddings = 16};
}

}  // namespace

int main() {
  const auto backend = open_cpu({.threads = 1});
  const Vocabulary ids = number_words();
  bert::ForPretraining model(tiny(ids.size()));
  nn::ParameterSet parameters(model, *backend);
  optim::Optimizer optimizer(parameters, {.method = optim::Method::adamw});

  double correct = 0, masked = 0;
  for (std::size_t step = 0; step <= 300; ++step) {
    const MaskedPage page(ids, step);
    const bert::PackedBatch batch = bert::pack(page.sequences, *backend);
    parameters.zero_gradients();
    const auto result =
        model(batch, page.targets(*backend), batch.randomness(step), bert::ForPretraining::Keep::logits);
    backward(result.masked_lm_loss + result.next_sentence_loss);
    optimizer.step(3e-3);

    const auto guesses = ops::to_host<std::int32_t>(ops::argmax(result.masked_lm_logits.value()));
    for (std::size_t i = 0; step > 280 && i < guesses.size(); ++i, ++masked) correct += guesses[i] == page.labels[i];
    if (step % 100 == 0)
      std::printf("step %3zu  loss %.4f  \"... %s ...\" was guessed \"%s\"\n", step,
                  ops::item(result.masked_lm_loss.value()), word_of(ids, page.labels[0]).c_str(),
                  word_of(ids, guesses[0]).c_str());
  }
  std::printf("words filled in over the last 20 steps: %.0f of %.0f\n", correct, masked);
  return correct / masked > 0.9 ? 0 : 1;
}
