// Checkpoints of TensorFlow loaded and written: Google's names, those of the model garden, and the ways to name one.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>

#include "bert/directory/google_names.h"
#include "bert/directory/model_directory.h"
#include "bert/network/heads.h"
#include "io/tensor_bundle.h"
#include "support/program.h"
#include "support/refusal.h"
#include "tensor/backends.h"

using namespace bertrand;
using namespace bertrand::bert;
using support::write_text;
namespace fs = std::filesystem;

namespace {

const Config kConfig{.vocab_size = 7,
                     .hidden_size = 4,
                     .num_hidden_layers = 2,
                     .num_attention_heads = 2,
                     .intermediate_size = 6,
                     .max_position_embeddings = 5};

/// A pre-training model with values of its own.
struct Model {
  explicit Model(std::uint64_t seed = 7) : parameters(model, *backend, {.seed = seed}) {
    const auto values = parameters.values().span<float>();
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += 0.001f * static_cast<float>(i * seed);
  }
  void write(const fs::path& directory) const {
    fs::create_directories(directory);
    write_checkpoint(io::Files::system(), directory, {.config = kConfig, .vocabulary = "[PAD]\n", .tokenizer = {}},
                     parameters, 20);
  }
  bool equals(const Model& other) const {
    for (const auto& segment : parameters.segments())
      if (ops::to_host<float>(parameters.value(segment)) !=
          ops::to_host<float>(other.parameters.value(*other.parameters.find(segment.name))))
        return false;
    return true;
  }

  std::unique_ptr<Backend> backend = open_cpu({.threads = 1});
  ForPretraining model{kConfig};
  nn::ParameterSet parameters;
};

/// The tensors of a checkpoint as what another is written from.
std::vector<io::TensorSource> sources_of(const fs::path& prefix) {
  const io::BundleFile opened(prefix);
  std::vector<io::TensorSource> sources;
  for (const io::BundleEntry& entry : opened.entries()) {
    const auto bytes = opened.bytes(entry);
    const std::vector<std::byte> copy(bytes.begin(), bytes.end());
    sources.push_back({.name = entry.name,
                       .type = io::find_safetensors_type(entry.type_name()),
                       .dims = entry.dims,
                       .bytes = copy.size(),
                       .read = [copy](std::uint64_t first, std::span<std::byte> part) {
                         std::memcpy(part.data(), copy.data() + first, part.size());
                       }});
  }
  return sources;
}

/// A checkpoint of Google's names in a directory, and the model that is in it.
struct Saved {
  Saved() { model.write(directory / ""); }
  fs::path prefix() const { return directory / "bert_model.ckpt"; }
  void rewrite(std::vector<io::TensorSource> tensors) const {
    io::write_bundle(io::Files::system(), prefix(), std::move(tensors));
  }
  std::string refusal() const {
    Model target(1);
    const Model untouched(1);
    std::string line = support::refusal(Failure::model, [&] { load_weights(directory / "", target.parameters); });
    CHECK(target.equals(untouched));
    const std::string path = (directory / "").string();
    for (std::size_t at; (at = line.find(path)) != std::string::npos;) line.erase(at, path.size());
    return line;
  }
  support::TemporaryDirectory directory;
  Model model;
};

/// The key of a parameter in a checkpoint of TensorFlow's model garden, whose encoder is at `root`.
std::string object_key(const std::string& google, const std::string& root) {
  std::string key = google;
  const auto replace = [&](const std::string& from, const std::string& to) {
    if (const auto at = key.find(from); at != std::string::npos) key.replace(at, from.size(), to);
  };
  replace("bert/embeddings/word_embeddings", root + "layer_with_weights-0/embeddings");
  replace("bert/embeddings/position_embeddings", root + "layer_with_weights-1/embeddings");
  replace("bert/embeddings/token_type_embeddings", root + "layer_with_weights-2/embeddings");
  replace("bert/embeddings/LayerNorm", root + "layer_with_weights-3");
  replace("bert/encoder/layer_0", root + "layer_with_weights-4");
  replace("bert/encoder/layer_1", root + "layer_with_weights-5");
  replace("bert/pooler/dense", root + "layer_with_weights-6");
  for (const char* part : {"query", "key", "value"})
    replace(std::string("attention/self/") + part, std::string("_attention_layer/_") + part + "_dense");
  replace("attention/output/dense", "_attention_layer/_output_dense");
  replace("attention/output/LayerNorm", "_attention_layer_norm");
  replace("intermediate/dense", "_intermediate_dense");
  replace("/output/dense", "/_output_dense");
  replace("/output/LayerNorm", "/_output_layer_norm");
  replace("cls/predictions/transform/dense", "masked_lm/dense");
  replace("cls/predictions/transform/LayerNorm", "masked_lm/layer_norm");
  replace("cls/predictions/output_bias", "masked_lm/output_bias");
  return key + "/.ATTRIBUTES/VARIABLE_VALUE";
}

/// Writes the encoder and the masked-word head as an object-based checkpoint, the heads of attention apart.
void write_objects(const Saved& saved, const std::string& root) {
  std::vector<io::TensorSource> tensors;
  for (io::TensorSource& source : sources_of(saved.prefix())) {
    if (source.name.find("seq_relationship") != std::string::npos || source.name == "global_step") continue;
    const bool is_self = source.name.find("/self/") != std::string::npos,
               is_output = source.name.find("attention/output/dense") != std::string::npos;
    if (is_self && source.dims.size() == 2) source.dims = {4, 2, 2};
    else if (is_self) source.dims = {2, 2};
    else if (is_output && source.dims.size() == 2) source.dims = {2, 2, 4};
    source.name = object_key(source.name, root);
    tensors.push_back(std::move(source));
  }
  for (const char* name : {"_CHECKPOINTABLE_OBJECT_GRAPH", "save_counter/.ATTRIBUTES/VARIABLE_VALUE"}) {
    tensors.push_back(tensors.front());  // every such checkpoint has them
    tensors.back().name = name;
  }
  saved.rewrite(std::move(tensors));
}

}  // namespace

TEST_CASE("a checkpoint that was written loads with the same bits however it is named") {
  const Saved saved;
  for (const char* name : {"", "bert_model.ckpt", "bert_model.ckpt.index"}) {
    CAPTURE(name);
    Model target(1);
    const nn::LoadReport report = load_weights(saved.directory / name, target.parameters);
    CHECK(report.missing.empty());
    CHECK(report.unused == std::vector<std::string>{"global_step"});
    CHECK(target.equals(saved.model));
    CHECK(read_config(saved.directory / name).hidden_size == 4);
    CHECK(weights_file(saved.directory / name) == saved.directory / "bert_model.ckpt.index");
    CHECK(is_checkpoint(saved.directory / name));
    CHECK(model_files(saved.directory / name).size() == 6);
  }
}

TEST_CASE("the text file of checkpoints names the newest one") {
  const Saved saved;
  fs::create_directories(saved.directory / "other");
  Model(3).write(saved.directory / "other");
  for (const char* ending : {".index", ".data-00000-of-00001"})
    fs::rename(saved.directory / (std::string("other/bert_model.ckpt") + ending),
               saved.directory / (std::string("model.ckpt-9") + ending));
  Model target(1);
  const auto newest = [&](const std::string& text) {
    write_text(saved.directory / "checkpoint", text);
    const fs::path file = weights_file(saved.directory / "");
    CHECK(file.parent_path() / "" == saved.directory / "");
    return file.filename();
  };
  CHECK(newest("model_checkpoint_path: \"model.ckpt-9\"\nall_model_checkpoint_paths: \"model.ckpt-3\"\n") ==
        "model.ckpt-9.index");
  CHECK(newest("all_model_checkpoint_paths: \"model.ckpt-3\"\nmodel_checkpoint_path: \"model.ckpt-9\"\n") ==
        "model.ckpt-9.index");
  CHECK(newest("model_checkpoint_path: \"/elsewhere/bert_model.ckpt\"\n") == "bert_model.ckpt.index");
  const support::TemporaryDirectory outside;  // where it may not lead, though there is one
  fs::copy_file(saved.directory / "bert_model.ckpt.index", outside / "bert_model.ckpt.index");
  CHECK(newest("model_checkpoint_path: \"" + (outside / "bert_model.ckpt").string() + "\"\n") ==
        "bert_model.ckpt.index");
  write_text(saved.directory / "checkpoint", "model_checkpoint_path: \"model.ckpt-5\"\n");
  CHECK(saved.refusal() ==
        "checkpoint: expected the checkpoint that it names beside it, model.ckpt-5.index, got no such file");
  write_text(saved.directory / "checkpoint", "nothing");
  CHECK(saved.refusal() == "checkpoint: expected model_checkpoint_path: \"<name>\", got none");
  fs::remove(saved.directory / "checkpoint");
  CHECK(saved.refusal() ==
        ": expected one checkpoint, got bert_model.ckpt, model.ckpt-9; hint: name one of them, as bert_model.ckpt");
}

TEST_CASE("a shard of a checkpoint is refused with the name of what to give") {
  const Saved saved;
  Model target(1);
  CHECK(support::refusal(Failure::model, [&] {
          load_weights(saved.directory / "bert_model.ckpt.data-00000-of-00001", target.parameters);
        }).ends_with("expected the .index of a checkpoint, got a shard of it; hint: name the .index"));
}

TEST_CASE("every name of Google's leads back to ours") {
  const Model model;
  for (const auto& segment : model.parameters.segments()) {
    const auto google = google_name(segment.name);
    REQUIRE_MESSAGE(google, segment.name);
    CHECK(our_name(google->name)->name == segment.name);
    CHECK(our_name(google->name)->transposed == google->transposed);
  }
  CHECK(google_name("qa_outputs.weight")->name == "cls/squad/output_weights");
  CHECK(google_name("classifier.bias")->name == "output_bias");
  CHECK_FALSE(our_name("bert/pooler/dense/kernel/adam_m"));
  CHECK_FALSE(our_name("global_step"));
  for (const std::string number : {"x", "", "-1", "0x", "0.5", "99999999999"})
    CHECK_FALSE(our_name("bert/encoder/layer_" + number + "/attention/self/query/kernel"));
  CHECK_FALSE(our_name("bert/encoder/layer_0"));
  CHECK_FALSE(our_name(""));
  CHECK_FALSE(google_name("cls.predictions.decoder.weight"));
}

TEST_CASE("object-based checkpoints load whole and with their encoder inside another model") {
  for (const char* root : {"", "model/", "encoder/", "model/layer_with_weights-0/"}) {
    CAPTURE(root);
    const Saved saved;
    write_objects(saved, root);
    Model target(1);
    const nn::LoadReport report = load_weights(saved.directory / "", target.parameters);
    CHECK(report.unused.empty());
    CHECK(report.missing == std::vector<std::string>{"cls.seq_relationship.weight", "cls.seq_relationship.bias"});
    for (const std::string& name : report.missing)
      ops::copy_into(saved.model.parameters.value(*saved.model.parameters.find(name)),
                     target.parameters.value(*target.parameters.find(name)));
    CHECK(target.equals(saved.model));
  }
}

TEST_CASE("word embeddings under the name of the decoder alone are loaded, and damage to them is found") {
  const Saved saved;
  const std::string name = "masked_lm/embedding_table/.ATTRIBUTES/VARIABLE_VALUE";
  auto tensors = sources_of(saved.prefix());
  for (io::TensorSource& source : tensors)
    if (source.name == "bert/embeddings/word_embeddings") source.name = name;
  saved.rewrite(tensors);
  Model target(1);
  CHECK(load_weights(saved.directory / "", target.parameters).missing.empty());
  CHECK(target.equals(saved.model));
  const io::BundleIndex index =
      io::parse_bundle_index(support::read_text(saved.directory / "bert_model.ckpt.index"), "f");
  const auto entry = std::ranges::find(index.entries, name, &io::BundleEntry::name);
  REQUIRE(entry != index.entries.end());
  std::string data = support::read_text(saved.directory / "bert_model.ckpt.data-00000-of-00001");
  data[entry->offset] ^= 1;
  write_text(saved.directory / "bert_model.ckpt.data-00000-of-00001", data);
  CHECK(saved.refusal().find("crc32c: expected ") != std::string::npos);
}

TEST_CASE("the keys of newer encoders are known too") {
  const auto name = [](const std::string& key) {
    const auto found = our_name(key + "/.ATTRIBUTES/VARIABLE_VALUE");
    return found ? found->name : "";
  };
  CHECK(name("encoder/_transformer_layers/11/_attention_layer/_query_dense/kernel") ==
        "bert.encoder.layer.11.attention.self.query.weight");
  CHECK(name("encoder/_embedding_norm_layer/gamma") == "bert.embeddings.LayerNorm.weight");
  CHECK(name("encoder/_position_embedding_layer/embeddings") == "bert.embeddings.position_embeddings.weight");
  CHECK(name("encoder/_pooler_layer/kernel") == "bert.pooler.dense.weight");
  CHECK(name("next_sentence..pooler_dense/bias") == "bert.pooler.dense.bias");
  CHECK(name("masked_lm/embedding_table") == "cls.predictions.decoder.weight");
  CHECK(name("model/layer_with_weights-5/_attention_output_dense/bias") ==
        "bert.encoder.layer.1.attention.output.dense.bias");
  CHECK(name("layer_with_weights-0/embeddings/.OPTIMIZER_SLOT/optimizer/m") == "");
  CHECK(name("optimizer/iter") == "");
}

TEST_CASE("moments are listed as unused unless they are asked for") {
  const Saved saved;
  auto tensors = sources_of(saved.prefix());
  const std::size_t count = tensors.size();
  for (std::size_t i = 0; i < count; ++i)
    for (const char* slot : {"adam_m", "adam_v"})
      if (tensors[i].name != "global_step") {
        tensors.push_back(tensors[i]);
        tensors.back().name += std::string("/") + slot;
      }
  saved.rewrite(tensors);
  Model target(1), moments(2);
  const nn::LoadReport report = load_weights(saved.directory / "", target.parameters);
  CHECK(report.missing.empty());
  CHECK(report.unused.size() == 2 * (count - 1) + 1);
  for (const std::string& name : report.unused) CHECK(is_moment(name));
  CHECK(target.equals(saved.model));
  Model second(3);
  nn::Moments wanted;
  for (const auto& segment : moments.parameters.segments()) {
    wanted.first.push_back({segment.name, moments.parameters.value(segment)});
    wanted.second.push_back({segment.name, second.parameters.value(*second.parameters.find(segment.name))});
  }
  load_moments(saved.directory / "", wanted);
  CHECK(moments.equals(saved.model));
  CHECK(second.equals(saved.model));

  const fs::path data = saved.directory / "bert_model.ckpt.data-00000-of-00001";
  const std::string whole = support::read_text(data);
  const io::BundleIndex index =
      io::parse_bundle_index(support::read_text(saved.directory / "bert_model.ckpt.index"), "f");
  const auto slot = std::ranges::find(index.entries, "bert/pooler/dense/bias/adam_v", &io::BundleEntry::name);
  REQUIRE(slot != index.entries.end());
  std::string damaged = whole;
  damaged[slot->offset] ^= 1;
  write_text(data, damaged);
  CHECK(support::refusal(Failure::model, [&] {
          load_moments(saved.directory / "", wanted);
        }).find("crc32c: expected ") != std::string::npos);
  CHECK(second.equals(saved.model));
  write_text(data, whole);

  std::erase_if(tensors, [](const auto& tensor) { return tensor.name == "bert/pooler/dense/kernel/adam_m"; });
  saved.rewrite(tensors);
  CHECK(support::refusal(Failure::model, [&] { load_moments(saved.directory / "", wanted); })
            .ends_with("bert_model.ckpt.index: --keep-moments: expected a tensor \"bert/pooler/dense/kernel/adam_m\", "
                       "got none; hint: without --keep-moments the moments begin at 0"));
}

TEST_CASE("a checkpoint in two shards loads and names the one that is missing") {
  const Saved saved;
  const auto tensors = sources_of(saved.prefix());
  const support::TemporaryDirectory parts;
  io::BundleIndex merged{.shards = 2, .entries = {}};
  for (const std::uint32_t shard : {0, 1}) {
    std::vector<io::TensorSource> half;
    for (std::size_t i = shard; i < tensors.size(); i += 2) half.push_back(tensors[i]);
    io::write_bundle(io::Files::system(), parts / "p", half);
    const io::BundleFile written(parts / "p");
    for (io::BundleEntry entry : written.entries()) {
      entry.shard = shard;
      merged.entries.push_back(entry);
    }
    fs::rename(parts / "p.data-00000-of-00001",
               saved.directory / fmt::format("bert_model.ckpt.data-{:05}-of-00002", shard));
  }
  std::ranges::sort(merged.entries, {}, &io::BundleEntry::name);
  write_text(saved.directory / "bert_model.ckpt.index", io::bundle_index_bytes(merged));
  Model target(1);
  CHECK(load_weights(saved.directory / "", target.parameters).missing.empty());
  CHECK(target.equals(saved.model));
  fs::remove(saved.directory / "bert_model.ckpt.data-00001-of-00002");
  CHECK(saved.refusal() ==
        "bert_model.ckpt.index: expected bert_model.ckpt.data-00001-of-00002 beside it, got no such file");
}

TEST_CASE("damaged and unusual tensors of a checkpoint are refused by name before a value changes") {
  const Saved saved;
  const std::string data = support::read_text(saved.directory / "bert_model.ckpt.data-00000-of-00001");
  std::string damaged = data;
  damaged[damaged.size() / 2] ^= 1;
  write_text(saved.directory / "bert_model.ckpt.data-00000-of-00001", damaged);
  CHECK(saved.refusal().find("crc32c: expected ") != std::string::npos);
  write_text(saved.directory / "bert_model.ckpt.data-00000-of-00001", data.substr(0, data.size() - 1));
  CHECK(saved.refusal().find("where the file does") != std::string::npos);
  write_text(saved.directory / "bert_model.ckpt.data-00000-of-00001", data);

  io::BundleIndex index = io::parse_bundle_index(support::read_text(saved.directory / "bert_model.ckpt.index"), "f");
  const auto changed = [&](auto change) {
    io::BundleIndex other = index;
    for (io::BundleEntry& entry : other.entries)
      if (entry.name == "bert/pooler/dense/bias") change(entry);
    write_text(saved.directory / "bert_model.ckpt.index", io::bundle_index_bytes(other));
    return saved.refusal();
  };
  CHECK(
      changed([](io::BundleEntry& entry) { entry.slices = {"\x0a\x02\x10\x02"}; }) ==
      "bert_model.ckpt.index: tensor \"bert/pooler/dense/bias\": expected one piece, got a partitioned variable of 1; "
      "hint: save it without a partitioner");
  CHECK(changed([](io::BundleEntry& entry) { entry.type = 7; }) ==
        "bert_model.ckpt.index: tensor \"bert/pooler/dense/bias\": dtype: expected F64, F32, F16 or BF16, got STRING");
  CHECK(changed([](io::BundleEntry& entry) { entry.type = 3; }) ==
        "bert_model.ckpt.index: tensor \"bert/pooler/dense/bias\": dtype: expected F64, F32, F16 or BF16, got I32");
  CHECK(changed([](io::BundleEntry& entry) {
          entry.dims = {2, 2};
        }).find("bert/pooler/dense/bias: expected [4] (config.json), got [2, 2]") != std::string::npos);
}

TEST_CASE("strict loading refuses what is missing or unused or mis-shaped") {
  const Saved saved;
  const auto refusal = [&](const nn::LoadReport& report) {
    return support::refusal(Failure::model, [&] { require_exact(report, saved.directory / ""); });
  };
  const std::string begin =
      (saved.directory / "bert_model.ckpt.index").string() + ": --strict: expected every tensor to fit, got ";
  CHECK(refusal({.loaded = {"a"}}) == "");
  CHECK(refusal({.missing = {"a", "b"}}) == begin + "2 missing: a, b");
  CHECK(refusal({.unused = {"global_step", "b/adam_m", "b/adam_v"}}) == "");
  CHECK(refusal({.unused = {"b", "global_step"}}) == begin + "1 unused: b");
  CHECK(refusal({.mis_shaped = {"a: expected [1], got [2]"}}) == begin + "1 mis-shaped: a: expected [1], got [2]");
}
