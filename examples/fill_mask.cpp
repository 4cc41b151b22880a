// Opens a BERT and fills a mask. usage: example_fill_mask DIRECTORY ["a text with [MASK]"]
//
// Any directory of Hugging Face's form that has the head of pre-training will do: bert-base-uncased, what pretrain
// wrote, or what `example_tiny_bert DIRECTORY` leaves. (all-MiniLM-L6-v2 came without that head, so it is refused.)
//
// What to see: config.json says how large the network is, vocab.txt has the words, model.safetensors the weights. A
// text becomes ids, the ids become rows, and of the row of [MASK] the head makes a number for every word.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <numeric>
#include <string>
#include <string_view>

#include "autograd/ops.h"
#include "bert/directory/model_directory.h"
#include "bert/network/heads.h"
#include "tensor/backends.h"

using namespace bertrand;

int main(int argc, char** argv) try {
  if (argc > 1 && std::string_view(argv[1]) == "--help")
    return std::puts("usage: example_fill_mask DIRECTORY [\"a text with [MASK]\"]"), 0;
  if (argc < 2) fail(Failure::usage, "expected a directory with a BERT, got none; hint: example_tiny_bert makes one");
  const std::string directory = argv[1], asked = argc > 2 ? argv[2] : "the sun rises in the [MASK]";
  const auto backend = open_cpu();
  const NoGrad no_graph;

  const bert::Config config = bert::read_config(directory);
  const text::Tokenizer tokenizer = bert::read_tokenizer(directory, {}, config);
  const text::Vocabulary& words = tokenizer.vocabulary();
  bert::ForMaskedLm model(config);
  bert::load_for_inference(directory, model, *backend);

  const std::size_t at = asked.find("[MASK]");
  if (at == std::string::npos) fail(Failure::input, "expected a text with [MASK], got \"{}\"", asked);
  std::vector<std::int32_t> ids{words.cls_id()};
  std::ranges::copy(tokenizer.encode(asked.substr(0, at)), std::back_inserter(ids));
  const auto masked = static_cast<std::int32_t>(ids.size());
  ids.push_back(words.mask_id());
  std::ranges::copy(tokenizer.encode(asked.substr(at + 6)), std::back_inserter(ids));
  ids.push_back(words.sep_id());
  const bert::Sequence sequence{.token_ids = ids, .token_types = std::vector<std::int32_t>(ids.size())};
  bert::check_sequences({&sequence, 1}, config);

  const Tensor row = ops::from_host(std::vector{masked}, {1}, *backend);
  const Variable hidden = model.bert(bert::pack({&sequence, 1}, *backend), {}, row);                // [1, hidden]
  const Variable scores = model.predictions(hidden, model.bert.embeddings.word_embeddings.weight);  // [1, vocab]
  const std::vector<float> p = ops::to_host<float>(softmax(scores).value());
  std::vector<std::int32_t> best(static_cast<std::size_t>(words.size()));
  std::iota(best.begin(), best.end(), 0);
  std::ranges::partial_sort(best, best.begin() + 5, std::greater{}, [&](std::int32_t id) { return p[id]; });
  for (int i = 0; i < 5; ++i) std::printf("%.4f %s\n", p[best[i]], std::string(words.token(best[i])).c_str());
  return 0;
} catch (const Error& error) {
  std::fprintf(stderr, "error: %s\n", error.what());
  return static_cast<int>(error.failure());
}
