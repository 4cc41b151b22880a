// Models beyond a limit written in shards, as transformers writes them.
#include <doctest/doctest.h>

#include "bert/directory/model_directory.h"
#include "bert/directory/one_layer.h"
#include "bert/network/heads.h"
#include "io/safetensors.h"
#include "support/program.h"
#include "tensor/backends.h"

using namespace bertrand;
using namespace bertrand::bert;
using support::kOneLayer;
namespace fs = std::filesystem;

TEST_CASE("a model beyond the limit is written in shards with an index and loads again") {
  const auto backend = open_cpu({.threads = 1});
  ForPretraining model(kOneLayer), other(kOneLayer);
  const nn::ParameterSet parameters(model, *backend, {.seed = 7});
  const support::TemporaryDirectory directory;
  constexpr std::uint64_t kMost = 100;  // less than the word embeddings, which are a shard by themselves
  const auto crcs = write_directory(io::Files::system(), directory / "",
                                    {.config = kOneLayer, .vocabulary = "[PAD]\n", .tokenizer = {}}, parameters, kMost);
  CHECK_FALSE(fs::exists(directory / "model.safetensors"));
  CHECK(crcs.size() == parameters.segments().size());

  const auto index = nlohmann::json::parse(support::read_text(directory / "model.safetensors.index.json"));
  std::size_t bytes = 0, shards = 0;
  for (const auto& segment : parameters.segments()) bytes += 4 * static_cast<std::size_t>(segment.count());
  CHECK(index["metadata"]["total_size"] == bytes);
  CHECK(index["metadata"]["total_parameters"] == bytes / 4);
  CHECK(index["weight_map"].size() == crcs.size());
  for (const auto& entry : fs::directory_iterator(directory / "")) {
    if (entry.path().extension() != ".safetensors") continue;
    ++shards;
    const io::SafetensorsFile file(entry.path());
    std::size_t held = 0;
    for (const io::SafetensorsEntry& tensor : file.entries()) {
      held += tensor.bytes.size();
      CHECK(index["weight_map"][tensor.name] == entry.path().filename().string());
    }
    CHECK((held <= kMost || file.entries().size() == 1));
  }
  CHECK(shards < crcs.size());  // small ones share a file
  CHECK(index["weight_map"]["bert.embeddings.word_embeddings.weight"] ==
        fmt::format("model-00001-of-{:05}.safetensors", shards));

  nn::ParameterSet loaded(other, *backend, {.seed = 1});
  load_whole(directory / "", loaded);
  CHECK(ops::to_host<float>(loaded.values()) == ops::to_host<float>(parameters.values()));
}

TEST_CASE("no shard has room for the tensor that the next one begins with") {
  const auto backend = open_cpu({.threads = 1});
  ForPretraining model(kOneLayer);
  const nn::ParameterSet parameters(model, *backend, {.seed = 7});
  const support::TemporaryDirectory directory;
  constexpr std::uint64_t kMost = 96;  // exactly a matrix of the attention and two vectors after it
  write_directory(io::Files::system(), directory / "", {.config = kOneLayer, .vocabulary = "[PAD]\n", .tokenizer = {}},
                  parameters, kMost);
  const auto index = nlohmann::json::parse(support::read_text(directory / "model.safetensors.index.json"));
  std::string shard;
  std::uint64_t held = 0;
  bool is_one_full = false;
  for (const auto& segment : parameters.segments()) {
    const std::uint64_t bytes = 4 * static_cast<std::uint64_t>(segment.count());
    if (bytes > kMost) continue;  // a shard by itself
    const std::string file = index["weight_map"][segment.name];
    if (file != shard) {
      CHECK((shard.empty() || held + bytes > kMost));
      held = 0;
    }
    shard = file;
    held += bytes;
    is_one_full |= held == kMost && bytes < kMost;
  }
  CHECK(is_one_full);
}

TEST_CASE("a model of exactly the limit is one file, and one of a byte more is two and an index") {
  const auto backend = open_cpu({.threads = 1});
  ForPretraining model(kOneLayer);
  const nn::ParameterSet parameters(model, *backend, {.seed = 7});
  std::uint64_t bytes = 0;
  for (const auto& segment : parameters.segments()) bytes += 4 * static_cast<std::uint64_t>(segment.count());
  for (const std::uint64_t less : {0, 1}) {
    CAPTURE(less);
    const support::TemporaryDirectory directory;
    write_directory(io::Files::system(), directory / "",
                    {.config = kOneLayer, .vocabulary = "[PAD]\n", .tokenizer = {}}, parameters, bytes - less);
    CHECK(fs::exists(directory / "model.safetensors") == (less == 0));
    CHECK(fs::exists(directory / "model.safetensors.index.json") == (less == 1));
    CHECK(fs::exists(directory / "model-00002-of-00002.safetensors") == (less == 1));
  }
}

TEST_CASE("an index may name the decoder's weights, which are the word embeddings, though no shard has them") {
  const auto backend = open_cpu({.threads = 1});
  ForPretraining model(kOneLayer), other(kOneLayer);
  const nn::ParameterSet parameters(model, *backend, {.seed = 7});
  const support::TemporaryDirectory directory;
  write_directory(io::Files::system(), directory / "", {.config = kOneLayer, .vocabulary = "[PAD]\n", .tokenizer = {}},
                  parameters, 100);
  const fs::path file = directory / "model.safetensors.index.json";
  auto index = nlohmann::json::parse(support::read_text(file));
  const std::string shard = index["weight_map"]["bert.embeddings.word_embeddings.weight"];
  index["weight_map"]["cls.predictions.decoder.weight"] = shard;
  support::write_text(file, index.dump());
  nn::ParameterSet loaded(other, *backend, {.seed = 1});
  load_whole(directory / "", loaded);
  CHECK(ops::to_host<float>(loaded.values()) == ops::to_host<float>(parameters.values()));
}
