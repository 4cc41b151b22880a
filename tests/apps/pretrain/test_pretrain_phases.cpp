// Pre-training in two phases: the second goes on with the weights of the first and, if asked, with its moments.
#include "apps/pretrain/pretrain_setting.h"
#include "bert/directory/google_names.h"
#include "io/safetensors.h"
#include "io/tensor_bundle.h"
#include "nn/tensor_file.h"
#include "support/small_model.h"
#include "tensor/backends.h"

using namespace bertrand;
using support::Outcome;
using support::PretrainSetting;

namespace {

/// A setting with a first phase of 12 tokens, of a model with 32 positions.
struct Phases : PretrainSetting {
  Phases() {
    const Outcome outcome = run("one", {"--recipe", "nvidia-phase1", "--steps", "6", "--max-seq-length", "12"});
    REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  }

  Outcome second(const std::string& output, const std::string& init, const support::Flags& more) const {
    support::Flags all = flags(output, support::joined({"--recipe", "nvidia-phase2", "--max-seq-length", "24"}, more));
    all[0] = "--init";
    all[1] = directory / init;
    return support::run_program("pretrain", all);
  }

  /// The tensors of a file whose names begin with `kind`, one after the other.
  std::vector<float> tensors(const std::string& name, const std::string& kind) const {
    const io::SafetensorsFile file(directory / name);
    std::vector<float> all;
    for (const io::SafetensorsEntry& entry : file.entries()) {
      if (!entry.name.starts_with(kind)) continue;
      const auto* values = reinterpret_cast<const float*>(entry.bytes.data());
      all.insert(all.end(), values, values + entry.bytes.size() / sizeof(float));
    }
    REQUIRE_FALSE(all.empty());
    return all;
  }
};

}  // namespace

TEST_CASE("a second phase goes on with weights and moments of the first and counts its steps anew") {
  const Phases phases;
  const Outcome kept = phases.second("kept", "one", {"--keep-moments", "--steps", "2", "--save-every", "1"});
  REQUIRE_MESSAGE(kept.code == 0, kept.error);
  CHECK(kept.out.find("moments from " + (phases.directory / "one/checkpoint-6/optimizer.safetensors").string()) !=
        std::string::npos);
  REQUIRE(phases.second("fresh", "one", {"--steps", "2", "--save-every", "1"}).code == 0);
  // The same weights and data, so the same gradient g: m ← β1 m + (1 − β1) g, and without the moments (1 − β1) g.
  for (const auto& [kind, beta] : {std::pair{"exp_avg.", 0.9}, {"exp_avg_sq.", 0.999}}) {
    const auto before = phases.tensors("one/checkpoint-6/optimizer.safetensors", kind),
               with = phases.tensors("kept/checkpoint-1/optimizer.safetensors", kind),
               without = phases.tensors("fresh/checkpoint-1/optimizer.safetensors", kind);
    REQUIRE(with.size() == before.size());
    double largest = 0;
    for (std::size_t i = 0; i < with.size(); ++i) {
      const double expected = beta * before[i] + without[i];
      CHECK(std::abs(with[i] - expected) <= 1e-6 * std::abs(expected) + 1e-9);
      largest = std::max(largest, std::abs(beta * before[i]));
    }
    CHECK(largest > 1e-6);  // the first phase left some
  }
  CHECK(phases.file("kept/model.safetensors") != phases.file("fresh/model.safetensors"));
  const auto metrics = phases.metrics("kept");
  CHECK(metrics.front().at("step") == 1);
  CHECK(metrics.front().at("loss") == phases.metrics("fresh").front().at("loss"));  // the weights of the first phase
}

TEST_CASE("a second phase is the same from a run and from its checkpoint and on replicas and when it is resumed") {
  const Phases phases;
  const support::Flags whole = {"--keep-moments", "--steps", "4", "--micro-batch-size", "3"};
  REQUIRE(phases.second("two", "one", whole).code == 0);
  REQUIRE(phases.second("other", "one/checkpoint-6", support::joined(whole, {"--replicas", "2"})).code == 0);
  phases.check_same("other", "two", 4);
  REQUIRE(phases.second("resumed", "one", support::joined(whole, {"--save-every", "2"})).code == 0);
  std::filesystem::remove_all(phases.directory / "resumed/checkpoint-4");
  const Outcome resumed = support::run_program("pretrain", {"--output", phases.directory / "resumed", "--resume"});
  REQUIRE_MESSAGE(resumed.code == 0, resumed.error);
  CHECK(resumed.out.find("moments from") == std::string::npos);
  CHECK(phases.file("resumed/model.safetensors") == phases.file("two/model.safetensors"));
}

TEST_CASE("a second phase is not resumed with other added tokens, of which the vocabulary shows nothing") {
  const Phases phases;
  const support::Flags flags = {"--keep-moments", "--steps", "1"};
  REQUIRE(phases.second("two", "one", flags).code == 0);
  support::write_text(phases.directory / "one/added_tokens.json", R"({"a": 5})");
  const Outcome refused = phases.second("two", "one", support::joined(flags, {"--resume"}));
  CHECK(refused.code == 2);
  CHECK_MESSAGE(refused.error.find("the tokenizer was lower case true, ") != std::string::npos, refused.error);
}

TEST_CASE("a run goes on when the model of another program that it began with is gone") {
  const Phases phases;
  const std::string file = phases.directory / "one/config.json";
  auto config = nlohmann::json::parse(support::read_text(file));
  config.update({{"_name_or_path", "where it was"}, {"transformers_version", "4.8.2"}});
  support::write_text(file, config.dump());
  REQUIRE(phases.second("two", "one", {"--steps", "4", "--save-every", "2"}).code == 0);
  const std::string expected = phases.file("two/model.safetensors");
  std::filesystem::remove_all(phases.directory / "two/checkpoint-4");
  std::filesystem::remove_all(phases.directory / "one");
  const Outcome resumed = support::run_program("pretrain", {"--output", phases.directory / "two", "--resume"});
  REQUIRE_MESSAGE(resumed.code == 0, resumed.error);
  CHECK(phases.file("two/model.safetensors") == expected);
}

TEST_CASE("moments that are not there or of another shape are refused in one line") {
  const Phases phases;
  const auto copy = [&](const std::string& to, const std::string& optimizer) {
    std::filesystem::create_directories(phases.directory / to);
    for (const std::string file : {"config.json", "model.safetensors", "vocab.txt"})
      std::filesystem::copy_file(phases.directory / "one" / file, phases.directory / to / file);
    if (!optimizer.empty())
      std::filesystem::copy_file(phases.directory / optimizer, phases.directory / to / "optimizer.safetensors");
  };
  copy("bare", "");
  const std::string bare = (phases.directory / "bare").string();
  const Outcome none = phases.second("out", "bare", {"--keep-moments", "--steps", "1"});
  CHECK(none.code == 4);
  CHECK(none.error == "error: --keep-moments: expected " + bare + "/optimizer.safetensors or " + bare +
                          "/checkpoint-N/optimizer.safetensors, got neither; hint: without --keep-moments the moments "
                          "begin at 0\n");

  std::string narrow = phases.file("config.json");
  narrow.replace(narrow.find("\"intermediate_size\": 32"), 23, "\"intermediate_size\": 16");
  support::write_text(phases.directory / "narrow.json", narrow);
  REQUIRE(phases.run("narrow", {"--config", phases.directory / "narrow.json", "--steps", "1"}).code == 0);
  copy("mixed", "narrow/checkpoint-1/optimizer.safetensors");
  const Outcome mixed = phases.second("out", "mixed", {"--keep-moments", "--steps", "1"});
  CHECK(mixed.code == 4);
  CHECK(mixed.error == "error: " + (phases.directory / "mixed/optimizer.safetensors").string() +
                           ": tensor \"exp_avg.bert.encoder.layer.0.intermediate.dense.weight\": expected shape [32, "
                           "16], got [16, 16]\n");

  const std::string header =
      R"({"exp_avg.bert.embeddings.word_embeddings.weight":{"dtype":"F32","shape":[1,1,1,1,1,1,1],"data_offsets":[0,4]}})";
  const auto length = static_cast<std::uint64_t>(header.size());
  support::write_text(
      phases.directory / "mixed/optimizer.safetensors",
      std::string(reinterpret_cast<const char*>(&length), sizeof length) + header + std::string(4, '\0'));
  const Outcome deep = phases.second("out", "mixed", {"--keep-moments", "--steps", "1"});
  CHECK(deep.code == 4);
  CHECK(deep.error.find("got [1, 1, 1, 1, 1, 1, 1]") != std::string::npos);

  std::filesystem::copy(phases.directory / "one", phases.directory / "best", std::filesystem::copy_options::recursive);
  std::string weights = phases.file("best/model.safetensors");
  weights[weights.size() - 4] ^= 1;  // the last bit of a weight
  support::write_text(phases.directory / "best/model.safetensors", weights);
  const Outcome best = phases.second("out", "best", {"--keep-moments", "--steps", "1"});
  CHECK(best.code == 4);
  CHECK(
      best.error.find("best: --keep-moments: expected the weights of the newest checkpoint, got others; hint: --init " +
                      (phases.directory / "best/checkpoint-6").string() + " takes ") != std::string::npos);

  std::string damaged = phases.file("one/checkpoint-6/optimizer.safetensors");
  damaged.back() ^= 1;
  support::write_text(phases.directory / "one/checkpoint-6/optimizer.safetensors", damaged);
  const Outcome rotten = phases.second("out", "one/checkpoint-6", {"--keep-moments", "--steps", "1"});
  CHECK(rotten.code == 4);
  CHECK(rotten.error.starts_with("error: " + (phases.directory / "one/checkpoint-6").string() +
                                 ": --keep-moments: expected a whole checkpoint, but optimizer.safetensors"));
  CHECK(phases.second("out", "one", {"--keep-moments", "--steps", "1"}).code == 4);

  const Outcome alone = phases.run("out", {"--keep-moments", "--steps", "1"});
  CHECK(alone.code == 2);
  CHECK(alone.error == "error: --keep-moments: expected with --init, got --config\n");
}

TEST_CASE("a new model may have word embeddings beyond its vocabulary as padding, and no others") {
  const PretrainSetting setting;
  const auto run = [&](const char* rows, const support::Flags& more = {}) {
    std::string config = setting.file("config.json");
    config.replace(config.find("57"), 2, rows);
    support::write_text(setting.directory / "padded.json", config);
    return setting.run("run", support::joined({"--config", setting.directory / "padded.json", "--steps", "2"}, more));
  };
  const std::string warning = "warning: " + (setting.directory / "vocab.txt").string() +
                              ": 57 tokens for 64 rows of word embeddings: the rest is taken for padding\n";
  const Outcome padded = run("64");
  REQUIRE_MESSAGE(padded.code == 0, padded.error);
  CHECK(padded.error == warning);
  CHECK(nlohmann::json::parse(setting.file("run/config.json")).at("vocab_size") == 64);
  const Outcome further =
      support::run_program("pretrain", {"--resume", "--output", setting.directory / "run", "--steps", "3"});
  CHECK_MESSAGE(further.code == 0, further.error);
  const Outcome other = run("67", {"--overwrite"});
  CHECK(other.code == 4);
  CHECK(other.error.ends_with("expected 67 tokens (vocab_size of " + (setting.directory / "padded.json").string() +
                              "), got 57; hint: is it another model's?\n"));
}

TEST_CASE("moments of a part that the first phase froze are not there to be kept unless the second freezes it too") {
  const Phases phases;
  REQUIRE(phases.second("frozen", "one", {"--steps", "1", "--freeze", "embeddings"}).code == 0);
  for (const char* how : {"--dry-run", "--quiet"}) {
    const Outcome refused = phases.second("out", "frozen", {"--keep-moments", "--steps", "1", how});
    CHECK(refused.code == 4);
    CHECK(refused.error ==
          "error: " + (phases.directory / "frozen/checkpoint-1/optimizer.safetensors").string() +
              ": tensor \"exp_avg.bert.embeddings.word_embeddings.weight\": expected one of shape [57, "
              "16], got none; hint: the run of --init did not train it: give its --freeze or "
              "--no-next-sentence here too, or leave out --keep-moments\n");
  }
  const Outcome same = phases.second("same", "frozen", {"--keep-moments", "--steps", "1", "--freeze", "embeddings"});
  CHECK_MESSAGE(same.code == 0, same.error);
}

TEST_CASE("a second phase takes weights and moments from a checkpoint of TensorFlow") {
  const Phases phases;
  // The first phase as Google's code saves it: the moments beside the weights.
  const auto backend = open_cpu({.threads = 1});
  const io::SafetensorsFile weights(phases.directory / "one/model.safetensors"),
      moments(phases.directory / "one/checkpoint-6/optimizer.safetensors");
  std::vector<io::TensorSource> tensors;
  const auto add = [&](const io::SafetensorsEntry& entry, const bert::GoogleName& google, const std::string& slot) {
    const Tensor value(Shape(entry.dims), DType::f32, *backend);
    backend->upload(entry.bytes.data(), value);
    const nn::NamedTensor named{google.name + slot, value};
    tensors.push_back(google.transposed ? nn::transposed_source(named) : nn::tensor_source(named));
  };
  for (const io::SafetensorsEntry& entry : weights.entries()) {
    const bert::GoogleName google = bert::google_name(entry.name).value();
    add(entry, google, "");
    add(*moments.find("exp_avg." + entry.name), google, "/adam_m");
    add(*moments.find("exp_avg_sq." + entry.name), google, "/adam_v");
  }
  std::filesystem::create_directories(phases.directory / "tf");
  io::write_bundle(io::Files::system(), phases.directory / "tf/model.ckpt-6", std::move(tensors));
  std::filesystem::copy_file(phases.directory / "one/config.json", phases.directory / "tf/bert_config.json");
  for (const char* name : {"vocab.txt", "tokenizer_config.json"})
    std::filesystem::copy_file(phases.directory / "one" / name, phases.directory / "tf" / name);

  const support::Flags more = {"--keep-moments", "--strict", "--steps", "2"};
  const Outcome ours = phases.second("ours", "one", more), theirs = phases.second("theirs", "tf/model.ckpt-6", more);
  REQUIRE_MESSAGE(ours.code == 0, ours.error);
  REQUIRE_MESSAGE(theirs.code == 0, theirs.error);
  CHECK(theirs.out.find("moments from " + (phases.directory / "tf/model.ckpt-6.index").string()) != std::string::npos);
  CHECK(phases.tensors("theirs/model.safetensors", "") == phases.tensors("ours/model.safetensors", ""));
  CHECK(phases.tensors("theirs/checkpoint-2/optimizer.safetensors", "") ==
        phases.tensors("ours/checkpoint-2/optimizer.safetensors", ""));
}

TEST_CASE("a second phase does not begin with weights that are no numbers") {
  const Phases phases;
  const std::string file = phases.directory / "one/model.safetensors";
  support::spoil_embedding(file, 5);
  const Outcome outcome = phases.second("two", "one", {"--steps", "2"});
  CHECK(outcome.code == 4);
  CHECK(outcome.error.starts_with("error: " + file +
                                  ": tensor \"bert.embeddings.word_embeddings.weight\": expected finite numbers"));
}
