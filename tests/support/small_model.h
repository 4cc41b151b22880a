// A very small BERT without a head, and data that it can learn by heart.
#pragma once
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "bert/directory/model_directory.h"
#include "bert/network/bert.h"
#include "support/program.h"
#include "tensor/backends.h"

namespace support {

inline const std::string kSmallVocabulary =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nred\ngreen\nblue\nfish\nbird\none\ntwo\nthe\n##s\n.\n";

struct SmallEncoder : bertrand::nn::Module {
  explicit SmallEncoder(const bertrand::bert::Config& config) : bert(in("bert"), config) {}
  bertrand::bert::Bert bert;
};

/// Writes a model directory: hidden size 16, 24 positions by default, dropout as in BERT.
inline void write_small_model(const std::filesystem::path& directory, bertrand::Dim layers = 1,
                              bertrand::Dim positions = 24) {
  std::filesystem::create_directories(directory);
  const bertrand::bert::Config config{.vocab_size = 15,
                                      .hidden_size = 16,
                                      .num_hidden_layers = layers,
                                      .num_attention_heads = 2,
                                      .intermediate_size = 32,
                                      .max_position_embeddings = positions};
  const auto backend = bertrand::open_cpu({.threads = 1});
  SmallEncoder model(config);
  const bertrand::nn::ParameterSet parameters(model, *backend);
  bertrand::bert::write_directory(bertrand::io::Files::system(), directory,
                                  {.config = config, .vocabulary = kSmallVocabulary, .tokenizer = {}}, parameters);
}

/// Makes a word of a small model NaN.
inline void spoil_embedding(const std::filesystem::path& weights, std::size_t token) {
  std::string bytes = read_text(weights);
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  const auto header = nlohmann::json::parse(bytes.substr(8, length));
  const auto& table = header.at("bert.embeddings.word_embeddings.weight").at("data_offsets");
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(bytes.data() + 8 + length + table.at(0).get<std::size_t>() + token * 16 * sizeof nan, &nan, sizeof nan);
  write_text(weights, bytes);
}

/// CSV rows whose label, fish or bird, is a word of the text.
inline std::string animals(int rows) {
  const char *colours[] = {"red", "green", "blue"}, *numbers[] = {"one", "two", "the"}, *animals[] = {"fish", "bird"};
  std::string text = "text,kind\n";
  for (int i = 0; i < rows; ++i)
    text += std::string("\"") + numbers[i / 6 % 3] + ", " + colours[i / 2 % 3] + " " + animals[i % 2] + "s.\"," +
            animals[i % 2] + "\n";
  return text;
}

}  // namespace support
