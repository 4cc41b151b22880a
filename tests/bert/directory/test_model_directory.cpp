// Model directories as other programs write them, and those that must be refused.
#include "bert/directory/config_file.h"
#include "bert/directory/model_directory.h"
#include "bert/directory/one_layer.h"
#include "bert/directory/tokenizer_config.h"

#include <doctest/doctest.h>

#include <cstring>

#include "bert/network/heads.h"
#include "io/safetensors.h"
#include "nn/tensor_file.h"
#include "support/program.h"
#include "support/refusal.h"
#include "support/worst.h"
#include "tensor/backends.h"

using namespace bertrand;
using namespace bertrand::bert;
using support::kOneLayer;
using support::write_text;
namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

/// The tensors of a file by name, so that a test can change one and write the rest as they are.
struct Stored {
  std::string dtype;
  std::vector<Dim> shape;
  std::string bytes;
};
using Tensors = std::map<std::string, Stored>;

Tensors read_tensors(const fs::path& file) {
  Tensors tensors;
  const io::SafetensorsFile stored(file);
  for (const auto& entry : stored.entries())
    tensors[entry.name] = {
        entry.dtype_name, entry.dims, {reinterpret_cast<const char*>(entry.bytes.data()), entry.bytes.size()}};
  return tensors;
}

void write_tensors(const fs::path& file, const Tensors& tensors) {
  Json header = Json::object();
  std::string data;
  for (const auto& [name, tensor] : tensors) {
    header[name] = {{"dtype", tensor.dtype},
                    {"shape", tensor.shape},
                    {"data_offsets", {data.size(), data.size() + tensor.bytes.size()}}};
    data += tensor.bytes;
  }
  const std::string text = header.dump();
  const std::uint64_t length = text.size();
  write_text(file, std::string(reinterpret_cast<const char*>(&length), 8) + text + data);
}

/// A pre-training model with values of its own, and the directory that it was written to.
struct Saved {
  support::TemporaryDirectory directory;
  std::unique_ptr<Backend> backend = open_cpu({.threads = 1});
  ForPretraining model{kOneLayer};
  nn::ParameterSet parameters{model, *backend, {.seed = 7}};
  Tensors tensors;

  Saved() {
    // Biases begin as zeros and norms as ones: make them tell apart too.
    const auto values = parameters.values().span<float>();
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += 0.001f * static_cast<float>(i);
    write_directory(io::Files::system(), directory / "",
                    {.config = kOneLayer, .vocabulary = "[PAD]\n", .tokenizer = {}}, parameters);
    tensors = read_tensors(file());
  }
  fs::path file() const { return directory / "model.safetensors"; }

  /// Renames tensors in the file.
  void rename(const std::string& from, const std::string& to) {
    Tensors renamed;
    for (auto& [name, tensor] : tensors) {
      std::string other = name;
      if (const auto at = other.find(from); at != std::string::npos) other.replace(at, from.size(), to);
      renamed[other] = tensor;
    }
    tensors = std::move(renamed);
    write_tensors(file(), tensors);
  }
};

/// A second model, to be filled.
struct Target {
  std::unique_ptr<Backend> backend = open_cpu({.threads = 1});
  ForPretraining model{kOneLayer};
  nn::ParameterSet parameters{model, *backend, {.seed = 1}};
};

/// The greatest difference between the values of two sets of parameters.
double difference(const nn::ParameterSet& a, const nn::ParameterSet& b) {
  double worst = 0;
  for (const auto& segment : a.segments()) {
    const auto x = ops::to_host<float>(a.value(segment)), y = ops::to_host<float>(b.value(*b.find(segment.name)));
    for (std::size_t i = 0; i < x.size(); ++i)
      worst = support::worst_of(worst, std::abs(static_cast<double>(x[i]) - y[i]));
  }
  return worst;
}

/// Loads into a fresh model; everything must be found.
double loaded_difference(const Saved& saved, const fs::path& from) {
  Target target;
  const nn::LoadReport report = load_weights(from, target.parameters);
  CHECK(report.missing.empty());
  CHECK(report.unused.empty());
  CHECK(report.mis_shaped.empty());
  CHECK(report.loaded.size() == saved.parameters.segments().size());
  return difference(saved.parameters, target.parameters);
}

/// What is said against a directory, without its name; nothing may have been loaded.
std::string refusal(const fs::path& directory) {
  Target target;
  const Target untouched;
  try {
    load_weights(directory, target.parameters);
  } catch (const Error& error) {
    CHECK(error.failure() == Failure::model);
    CHECK(difference(target.parameters, untouched.parameters) == 0);
    std::string text = error.what();
    CHECK(text.find('\n') == std::string::npos);
    for (std::size_t at; (at = text.find((directory / "").string())) != std::string::npos;)
      text.erase(at, (directory / "").string().size());
    return text;
  }
  return "";
}

const std::string kNorm = "bert.embeddings.LayerNorm";

}  // namespace

TEST_CASE("a directory that was written is read back to the same bits, and so is its file alone") {
  const Saved saved;
  CHECK(loaded_difference(saved, saved.directory / "") == 0);
  CHECK(loaded_difference(saved, saved.file()) == 0);
  fs::copy_file(saved.file(), saved.directory / "0af3");  // as caches of Hugging Face name it
  CHECK(loaded_difference(saved, saved.directory / "0af3") == 0);
  CHECK(config_text(read_config_file(saved.directory / "config.json", UnknownKeys::refuse)) == config_text(kOneLayer));
  CHECK(support::read_text(saved.directory / "vocab.txt") == "[PAD]\n");
  CHECK(read_tokenizer_config(saved.directory / "").lower_case == true);
}

TEST_CASE("gamma and beta, dense_act, an encoder without \"bert.\" and the decoder's names are understood") {
  for (const std::vector<std::pair<std::string, std::string>>& names :
       std::vector<std::vector<std::pair<std::string, std::string>>>{
           {{"LayerNorm.weight", "LayerNorm.gamma"}, {"LayerNorm.bias", "LayerNorm.beta"}},
           {{"intermediate.dense.", "intermediate.dense_act."}, {"pooler.dense.", "pooler.dense_act."}},
           {{"bert.", ""}},
           {{"bert.embeddings.word_embeddings.weight", "cls.predictions.decoder.weight"},
            {"cls.predictions.bias", "cls.predictions.decoder.bias"}}}) {
    Saved saved;
    for (const auto& [from, to] : names) {
      CAPTURE(to);
      const auto before = saved.tensors.size();
      saved.rename(from, to);
      REQUIRE(saved.tensors.size() == before);
    }
    CHECK(loaded_difference(saved, saved.directory / "") == 0);
  }
}

TEST_CASE("second names beside the first, and position_ids, are no unused weights") {
  Saved saved;
  saved.tensors["cls.predictions.decoder.weight"] = saved.tensors["bert.embeddings.word_embeddings.weight"];
  saved.tensors["cls.predictions.decoder.bias"] = saved.tensors["cls.predictions.bias"];
  saved.tensors["bert.embeddings.position_ids"] = {"I64", {1, 1}, std::string(8, '\0')};
  write_tensors(saved.file(), saved.tensors);
  CHECK(loaded_difference(saved, saved.directory / "") == 0);
}

TEST_CASE("weights of every floating type are loaded, rounded as their type is") {
  const std::vector<std::pair<DType, double>> kinds = {
      {DType::f32, 0}, {DType::f64, 0}, {DType::f16, 5e-4}, {DType::bf16, 4e-3}};
  for (const auto& [dtype, error] : kinds) {
    CAPTURE(name_of(dtype));
    const Saved saved;
    std::vector<nn::NamedTensor> tensors;
    double largest = 0;
    for (const auto& segment : saved.parameters.segments()) {
      tensors.push_back({segment.name, ops::cast(saved.parameters.value(segment), dtype)});
      for (const float x : ops::to_host<float>(saved.parameters.value(segment)))
        largest = std::max(largest, std::abs(static_cast<double>(x)));
    }
    {
      io::FileWriter out(io::Files::system(), saved.file());
      nn::write_tensors(out, std::move(tensors));
    }
    const double got = loaded_difference(saved, saved.directory / "");
    CHECK(got <= error * largest);
    CHECK((got == 0) == (error == 0));
  }
}

TEST_CASE("shards that an index names are read together") {
  Saved saved;
  Tensors first, second;
  Json map;
  for (const auto& [name, tensor] : saved.tensors) {
    const bool in_first = first.size() <= second.size();
    (in_first ? first : second)[name] = tensor;
    map[name] = in_first ? "model-00001-of-00002.safetensors" : "model-00002-of-00002.safetensors";
  }
  fs::remove(saved.file());
  const auto write_index = [&](const Json& json) {
    write_text(saved.directory / "model.safetensors.index.json", json.dump());
  };
  write_index({{"metadata", {{"total_size", 1}}}, {"weight_map", map}});
  write_tensors(saved.directory / "model-00001-of-00002.safetensors", first);
  CHECK(refusal(saved.directory / "") ==
        "model.safetensors.index.json: weight_map: expected model-00002-of-00002.safetensors beside it, got no such "
        "file");
  write_tensors(saved.directory / "model-00002-of-00002.safetensors", second);
  CHECK(loaded_difference(saved, saved.directory / "") == 0);

  map["more"] = "model-00002-of-00002.safetensors";  // though the model does not need it
  write_index({{"weight_map", map}});
  CHECK(refusal(saved.directory / "") ==
        "model.safetensors.index.json: weight_map: expected model-00002-of-00002.safetensors to have \"more\", got no "
        "such tensor");
  map.erase("more");
  write_index({{"weight_map", map}});

  write_tensors(saved.directory / "model-00002-of-00002.safetensors", saved.tensors);  // some tensors twice
  CHECK(refusal(saved.directory / "").find("expected one of this meaning, got also") != std::string::npos);

  const std::string names =
      "model.safetensors.index.json: weight_map: expected names of .safetensors files in this "
      "directory, got ";
  for (const Json& name : {Json("../model.safetensors"), Json("/etc/model.safetensors"), Json("model.bin"), Json(3)}) {
    write_index({{"weight_map", {{"w", name}}}});
    CHECK(refusal(saved.directory / "") == names + name.dump());
  }
  for (const auto& [json, complaint] : {std::pair{Json::array(), "expected a JSON object, got []"},
                                        {Json::object(), "weight_map: expected an object, got none"},
                                        {Json{{"weight_map", 3}}, "weight_map: expected an object, got 3"}}) {
    write_index(json);
    CHECK(refusal(saved.directory / "") == std::string("model.safetensors.index.json: ") + complaint);
  }
  write_text(saved.directory / "model.safetensors.index.json", "{");
  CHECK(refusal(saved.directory / "").starts_with("model.safetensors.index.json: expected JSON, got a"));
}

TEST_CASE("pickled weights and those of Keras are refused by name, and a directory without weights says so") {
  const std::string hint = "; hint: save the model as model.safetensors";
  for (const char* name : {"pytorch_model.bin", "model.pt", "model.pth", "model.pkl", "model.ckpt"}) {
    CAPTURE(name);
    const support::TemporaryDirectory directory;
    write_text(directory / name, "x");
    const std::string expected = std::string(name) + ": pickled weights can run code and are not read" + hint;
    CHECK(refusal(directory / "") == expected);
    Target target;
    CHECK_THROWS_WITH_AS(load_weights(directory / name, target.parameters),
                         ((directory / "").string() + expected).c_str(), Error);
  }
  const support::TemporaryDirectory directory;
  CHECK(refusal(directory / "").ends_with(": expected model.safetensors or a TensorFlow checkpoint, got neither"));
  for (const char* name : {"tf_model.h5", "bert.keras"}) {
    const support::TemporaryDirectory keras;
    write_text(keras / name, "x");
    CHECK(refusal(keras / "") == std::string(name) + ": weights of Keras are not read" + hint +
                                     " (transformers) or as a checkpoint (tf.train.Checkpoint)");
  }
  Target target;
  const std::string nothing = ": expected a model directory or a checkpoint, got nothing there";
  CHECK_THROWS_WITH_AS(load_weights(directory / "none", target.parameters),
                       ((directory / "none").string() + nothing).c_str(), Error);
  std::filesystem::create_directory(directory / "bert-base");
  CHECK_THROWS_WITH_AS(load_weights(directory / "bret-base/", target.parameters),
                       ((directory / "bret-base/").string() + nothing + "; did you mean bert-base?").c_str(), Error);
}

TEST_CASE("what is no model is refused in words") {
  const support::TemporaryDirectory directory;
  const auto configuration_refusal = [](const std::filesystem::path& model) {
    return support::refusal(Failure::model, [&] { read_config(model); });
  };
  const std::string model = "expected a model directory (config.json, model.safetensors, vocab.txt)";
  const std::string none = model + " or a TensorFlow checkpoint with its bert_config.json, got no configuration in " +
                           (directory / "").parent_path().string();
  write_text(directory / "notes.txt", "one line");
  CHECK(configuration_refusal((directory / "").parent_path()) == (directory / "").parent_path().string() + ": " + none);
  CHECK(configuration_refusal(directory / "notes.txt") == (directory / "notes.txt").string() + ": " + none);
  CHECK(refusal(directory / "notes.txt")
            .ends_with(model + ", a .safetensors file or a TensorFlow checkpoint, got another file"));
  write_text(directory / "config.json", "{}");
  CHECK(refusal(directory / "config.json").ends_with(", got another file; hint: name its directory"));
}

TEST_CASE("tensors of another shape are named, as many as a line holds") {
  Saved saved;
  Stored& norm = saved.tensors[kNorm + ".weight"];
  norm.shape = {2, 2};
  write_tensors(saved.file(), saved.tensors);
  CHECK(refusal(saved.directory / "")
            .ends_with(": 1 tensor of another shape than the model's: bert.embeddings.LayerNorm.weight: expected [4] "
                       "(config.json), got "
                       "[2, 2]; hint: config.json, vocabulary and weights must be of one model"));

  // A vocabulary of another size than the weights.
  Stored& words = saved.tensors["bert.embeddings.word_embeddings.weight"];
  words = {"F32", {8, 4}, std::string(8 * 4 * 4, '\0')};
  saved.tensors["cls.predictions.bias"] = {"F32", {8}, std::string(8 * 4, '\0')};
  saved.tensors["bert.pooler.dense.bias"] = {"F32", {1}, std::string(4, '\0')};
  write_tensors(saved.file(), saved.tensors);
  const std::string four = refusal(saved.directory / "");
  CHECK(four.find(": 4 tensors of another shape than the model's: ") != std::string::npos);
  CHECK(four.find("bert.embeddings.word_embeddings.weight: expected [7, 4] (config.json), got [8, 4]") !=
        std::string::npos);
  CHECK(four.find(" and 1 more; hint") != std::string::npos);
}

TEST_CASE("a head of another shape may count as missing where the caller says so") {
  Saved saved;
  saved.tensors["cls.seq_relationship.bias"] = {"F32", {3}, std::string(12, '\0')};
  write_tensors(saved.file(), saved.tensors);
  Target target;
  const Target fresh;
  const nn::LoadReport report = load_weights(saved.directory / "", target.parameters, [](const std::string& name) {
    return name.starts_with("cls.seq_relationship");
  });
  CHECK(report.missing == std::vector<std::string>{"cls.seq_relationship.bias"});
  CHECK(report.mis_shaped == std::vector<std::string>{"cls.seq_relationship.bias: expected [2] (the task), got [3]"});
  const auto& segment = *target.parameters.find("cls.seq_relationship.bias");
  CHECK(ops::to_host<float>(target.parameters.value(segment)) == ops::to_host<float>(fresh.parameters.value(segment)));
}

TEST_CASE("the report names what is missing and what nobody asked for") {
  Saved saved;
  saved.tensors.erase("cls.predictions.bias");
  saved.tensors.erase("bert.pooler.dense.bias");
  for (int i = 0; i < 8; ++i) saved.tensors[fmt::format("more.{}", i)] = {"F32", {1}, std::string(4, '\0')};
  write_tensors(saved.file(), saved.tensors);
  Target target;
  const nn::LoadReport report = load_weights(saved.directory / "", target.parameters);
  CHECK(report.missing == std::vector<std::string>{"bert.pooler.dense.bias", "cls.predictions.bias"});
  CHECK(report.unused.size() == 8);
  CHECK(report.text() ==
        fmt::format("weights: {} loaded, 2 missing, 8 unused, 0 mis-shaped\n"
                    "  missing, initialised from the seed: bert.pooler.dense.bias, cls.predictions.bias\n"
                    "  unused: more.0, more.1, more.2, more.3, more.4, more.5 and 2 more",
                    report.loaded.size()));

  CHECK_THROWS_AS(load_whole(saved.directory / "", target.parameters), Error);
  CHECK_NOTHROW(nn::require(report, "d", [](const std::string&) { return true; }));
  CHECK_THROWS_WITH_AS(nn::require(report, "d", [](const std::string& name) { return name.starts_with("cls."); }),
                       "d: weights: expected every tensor of the model, got none for 1: bert.pooler.dense.bias; hint: "
                       "are config.json and the weights of one BERT?",
                       Error);
}

TEST_CASE("more layers than config.json has, a decoder of its own and a name that comes twice are refused") {
  using Tensor = decltype(Saved::tensors)::mapped_type;
  const auto refused = [](const std::string& name, const Tensor& tensor) {
    Saved saved;
    saved.tensors[name] = tensor;
    write_tensors(saved.file(), saved.tensors);
    const std::string error = refusal(saved.directory / ""), file = "model.safetensors: tensor \"" + name + "\": ";
    return error.starts_with(file) ? error.substr(file.size()) : error;
  };
  CHECK(refused("bert.encoder.layer.1.output.dense.bias", {"F32", {4}, std::string(16, '\0')}) ==
        "expected the encoder of the configuration, which has no such parameter; hint: num_hidden_layers?");
  const std::string tied = "expected the numbers of bert.embeddings.word_embeddings.weight (tied), ";
  CHECK(refused("cls.predictions.decoder.weight", {"F32", {7, 4}, std::string(7 * 4 * 4, '\0')}) ==
        tied + "got others");
  CHECK(refused("cls.predictions.decoder.weight", {"F16", {7, 4}, std::string(7 * 4 * 2, '\0')}) ==
        tied + "of type F32, got type F16");
  CHECK(refused("cls.predictions.decoder.bias", {"F32", {7}, std::string(7 * 4, '\1')}) ==
        "expected the numbers of cls.predictions.bias (tied), got others");
  CHECK(refused(kNorm + ".gamma", Saved().tensors[kNorm + ".weight"]) ==
        "model.safetensors: tensor \"bert.embeddings.LayerNorm.weight\": expected one of this meaning, got also "
        "\"bert.embeddings.LayerNorm.gamma\"");
}

TEST_CASE("weights that are whole numbers are refused") {
  Saved saved;
  saved.tensors["bert.embeddings.word_embeddings.weight"].dtype = "I32";
  write_tensors(saved.file(), saved.tensors);
  CHECK(refusal(saved.directory / "") ==
        "model.safetensors: tensor \"bert.embeddings.word_embeddings.weight\": dtype: expected F64, F32, F16 or BF16, "
        "got I32");
}

TEST_CASE("a damaged file is refused as a whole") {
  Saved saved;
  const std::string bytes = support::read_text(saved.file());
  write_text(saved.file(), bytes.substr(0, bytes.size() - 1));
  CHECK(refusal(saved.directory / "").find("hint: is it cut short?") != std::string::npos);
}
