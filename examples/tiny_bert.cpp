// A tiny BERT on a page of text: it learns to fill in the words that are masked out.
//
// What to see: sequences of different lengths are packed without padding; the head runs on masked rows only; the whole
// of pre-training is data, a forward pass, backward(), and an optimizer step.
#include <cstdio>
#include <string_view>
#include <utility>
#include <vector>

#include "autograd/operators.h"
#include "bert/directory/model_directory.h"
#include "bert/network/heads.h"
#include "optim/optimizer.h"
#include "page_of_text.h"
#include "tensor/backends.h"

using namespace bertrand;

namespace {

/// The sentences of the page, one word of each masked, another one in every step.
struct MaskedPage {
  std::vector<bert::Sequence> sequences;
  std::vector<std::int32_t> rows, labels;  ///< of each masked word: its row in the packed batch, and what it was

  MaskedPage(const text::Tokenizer& tokenizer, std::size_t step) {
    const text::Vocabulary& vocabulary = tokenizer.vocabulary();
    std::size_t first_row = 0;
    for (std::size_t s = 0; s < kPage.size(); ++s) {
      std::vector<std::int32_t> tokens = tokenizer.encode(kPage[s]);
      const std::size_t masked = 1 + (step * 5 + s) % tokens.size();
      tokens.insert(tokens.begin(), vocabulary.cls_id());
      tokens.push_back(vocabulary.sep_id());
      rows.push_back(static_cast<std::int32_t>(first_row + masked));
      labels.push_back(std::exchange(tokens[masked], vocabulary.mask_id()));
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

bert::Config tiny(Dim words) {
  return {.vocab_size = words,
          .hidden_size = 48,
          .num_hidden_layers = 2,
          .num_attention_heads = 4,
          .intermediate_size = 96,
          .hidden_dropout_prob = 0,
          .attention_probs_dropout_prob = 0,
          .max_position_embeddings = 16};
}

}  // namespace

/// The argument, if there is one, is a folder that the model is saved in: example_fill_mask reads it.
int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "--help") return std::puts("usage: example_tiny_bert [FOLDER]"), 0;
  const auto backend = open_cpu({.threads = 1});
  const text::Tokenizer tokenizer(text::Vocabulary::parse(vocabulary_of_page(), "the page"));
  const bert::Config config = tiny(tokenizer.vocabulary().size());
  bert::ForPretraining model(config);
  nn::ParameterSet parameters(model, *backend);
  optim::Optimizer optimizer(parameters, {.method = optim::Method::adamw});

  double correct = 0, masked = 0;
  for (std::size_t step = 0; step <= 300; ++step) {
    const MaskedPage page(tokenizer, step);
    const bert::PackedBatch batch = bert::pack(page.sequences, *backend);
    parameters.zero_gradients();
    const auto result =
        model(batch, page.targets(*backend), batch.randomness(step), bert::ForPretraining::Keep::logits);
    backward(result.masked_lm_loss + result.next_sentence_loss);
    optimizer.step(3e-3);

    const auto guesses = ops::to_host<std::int32_t>(ops::argmax(result.masked_lm_logits.value()));
    for (std::size_t i = 0; step > 280 && i < guesses.size(); ++i, ++masked) correct += guesses[i] == page.labels[i];
    const auto word = [&](std::int32_t id) { return std::string(tokenizer.vocabulary().token(id)); };
    if (step % 100 == 0)
      std::printf("step %3zu  loss %.4f  \"... %s ...\" was guessed \"%s\"\n", step,
                  ops::item(result.masked_lm_loss.value()), word(page.labels[0]).c_str(), word(guesses[0]).c_str());
  }
  std::printf("words filled in over the last 20 steps: %.0f of %.0f\n", correct, masked);
  if (argc > 1) {
    std::filesystem::create_directories(argv[1]);
    bert::write_directory(io::Files::system(), argv[1], {config, vocabulary_of_page(), {}}, parameters);
  }
  return correct / masked > 0.9 ? 0 : 1;
}
