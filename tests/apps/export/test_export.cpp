// The program export: what it writes, and what it refuses.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>

#include "support/conversation.h"
#include "support/program.h"
#include "support/small_heads.h"

using support::Outcome;
using support::read_text;
using support::run_program;

namespace {

Outcome export_as(const std::string& format, const std::filesystem::path& model, const std::filesystem::path& output) {
  return run_program("export", {"--model", model.string(), "--format", format, "--output", output.string()});
}

}  // namespace

TEST_CASE("a Hugging Face directory is exported as itself") {
  const support::TemporaryDirectory directory;
  support::write_small_classifier(directory / "model");
  const Outcome outcome = export_as("huggingface", directory / "model", directory / "copy");
  CHECK(outcome.error.find("error") == std::string::npos);
  REQUIRE(outcome.code == 0);
  for (const char* name : {"config.json", "vocab.txt", "tokenizer.json", "tokenizer_config.json", "model.safetensors"})
    CHECK(read_text(directory / "model" / name) == read_text(directory / "copy" / name));
}

TEST_CASE("SIGTERM ends export of every format with its own exit code and leaves nothing behind") {
  const support::TemporaryDirectory directory;
  support::write_small_classifier(directory / "model");
  const std::string words = directory / "words";
  REQUIRE(::mkfifo(words.c_str(), 0600) == 0);
  for (const std::string format : {"onnx", "saved-model", "tf-checkpoint", "huggingface"}) {
    for (const bool is_stopped : {true, false}) {
      CAPTURE(format);
      CAPTURE(is_stopped);
      support::Conversation work("export", {"--model", directory / "model", "--format", format, "--output",
                                            directory / "exported", "--vocab-file", words});
      const int pipe = ::open(words.c_str(), O_WRONLY);  // waits until the program reads
      if (is_stopped) work.signal(SIGTERM);
      CHECK(::write(pipe, support::kSmallVocabulary.data(), support::kSmallVocabulary.size()) > 0);
      ::close(pipe);
      CHECK(work.finish() == (is_stopped ? 75 : 0));
      const auto left = std::ranges::count_if(
          std::filesystem::directory_iterator(directory / ""),
          [](const auto& entry) { return entry.path().filename().string().starts_with("exported"); });
      CHECK(left == (is_stopped ? 0 : 1));
    }
    std::filesystem::remove_all(directory / "exported");
  }
}

TEST_CASE("an encoder is exported with the files and the length of sentence-transformers") {
  const support::TemporaryDirectory directory;
  support::write_small_model(directory / "model");
  const std::map<std::string, std::string> files = {
      {"modules.json", R"([{"path": "", "type": "sentence_transformers.models.Transformer"},
                           {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
                           {"path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}])"},
      {"1_Pooling/config.json", R"({"pooling_mode": "cls"})"},
      {"sentence_bert_config.json", R"({"transformer_task": "feature-extraction"})"}};
  std::filesystem::create_directory(directory / "model/1_Pooling");
  for (const auto& [name, text] : files) support::write_text(directory / ("model/" + name), text);
  auto tokenizer = nlohmann::json::parse(read_text(directory / "model/tokenizer_config.json"));
  tokenizer["model_max_length"] = 6;
  support::write_text(directory / "model/tokenizer_config.json", tokenizer.dump());
  REQUIRE(export_as("huggingface", directory / "model", directory / "copy").code == 0);
  for (const auto& [name, text] : files) CHECK(read_text(directory / ("copy/" + name)) == text);
  CHECK(nlohmann::json::parse(read_text(directory / "copy/tokenizer_config.json")) == tokenizer);
  for (const auto& [format, place] :
       {std::pair("onnx", ""), {"tf-checkpoint", ""}, {"saved-model", "1/assets.extra"}}) {
    REQUIRE(export_as(format, directory / "model", directory / format).code == 0);
    for (const auto& [name, text] : files) CHECK(read_text(directory / format / place / name) == text);
    CHECK_FALSE(std::filesystem::exists(directory / format / place / "model.safetensors"));  // the encoder's own
  }

  support::write_text(directory / "model/modules.json", R"([{"path": "../model", "type": "X"}])");
  const Outcome outcome = export_as("huggingface", directory / "model", directory / "other");
  CHECK(outcome.code != 0);
  CHECK(outcome.error.find("modules.json: [].path: expected a directory beside it, got \"../model\"") !=
        std::string::npos);
  CHECK_FALSE(std::filesystem::exists(directory / "other"));
}

TEST_CASE("an exported model without architectures is named after its tensors") {
  namespace bert = bertrand::bert;
  const support::TemporaryDirectory directory;
  const support::SmallHead unnamed{.architecture = ""};
  support::write_small_head<bert::ForPretraining>(directory / "BertForPreTraining", unnamed);
  support::write_small_head<bert::ForMaskedLm>(directory / "BertForMaskedLM", unnamed);
  support::write_small_head<bert::ForQuestionAnswering>(directory / "BertForQuestionAnswering", unnamed);
  support::write_small_head<bert::ForSequenceClassification>(directory / "BertForSequenceClassification", unnamed, 3);
  support::write_small_head<bert::ForTokenClassification>(directory / "BertForTokenClassification", unnamed, 3);
  support::write_small_head<support::SmallEncoder>(directory / "BertModel", unnamed);
  for (const std::string name : {"BertForPreTraining", "BertForMaskedLM", "BertForQuestionAnswering",
                                 "BertForSequenceClassification", "BertForTokenClassification", "BertModel"}) {
    CAPTURE(name);
    const auto exported = [&](const std::string& from, const std::string& format, const std::string& to) {
      REQUIRE(export_as(format, directory / from, directory / to).code == 0);
    };
    const auto check_export = [&](const std::string& copy) {
      const auto config = nlohmann::json::parse(read_text(directory / copy / "config.json"));
      CHECK(config["architectures"] == nlohmann::json{name});
      CHECK(read_text(directory / copy / "model.safetensors") == read_text(directory / name / "model.safetensors"));
    };
    exported(name, "huggingface", name + "-copy");
    check_export(name + "-copy");
    // Google's checkpoints have names of their own, and none for the architecture.
    exported(name, "tf-checkpoint", name + "-tf");
    auto config = nlohmann::json::parse(read_text(directory / (name + "-tf") / "bert_config.json"));
    config.erase("architectures");
    support::write_text(directory / (name + "-tf") / "bert_config.json", config.dump());
    exported(name + "-tf", "huggingface", name + "-back");
    check_export(name + "-back");
  }
}

TEST_CASE("a checkpoint of TensorFlow is exported and exported back to the same files") {
  const support::TemporaryDirectory directory;
  support::write_small_labeller(directory / "model", {"O", "B-FISH", "I-FISH"});
  REQUIRE(export_as("tf-checkpoint", directory / "model", directory / "tf").code == 0);
  for (const char* name : {"bert_config.json", "vocab.txt", "checkpoint"})
    CHECK(std::filesystem::exists(directory / "tf" / name));
  CHECK(read_text(directory / "tf" / "checkpoint") ==
        "model_checkpoint_path: \"bert_model.ckpt\"\nall_model_checkpoint_paths: \"bert_model.ckpt\"\n");
  for (const char* name : {"tf", "tf/bert_model.ckpt", "tf/bert_model.ckpt.index"}) {
    CAPTURE(name);
    std::filesystem::remove_all(directory / "copy");
    REQUIRE(export_as("huggingface", directory / name, directory / "copy").code == 0);
    for (const char* file :
         {"config.json", "vocab.txt", "tokenizer.json", "tokenizer_config.json", "model.safetensors"})
      CHECK(read_text(directory / "model" / file) == read_text(directory / "copy" / file));
  }
}

TEST_CASE("a checkpoint that Google's code computes in another way is exported with a warning") {
  const support::TemporaryDirectory directory;
  support::write_small_classifier(directory / "model");
  CHECK(export_as("tf-checkpoint", directory / "model", directory / "tf").error.find("warning") == std::string::npos);
  auto config = nlohmann::json::parse(read_text(directory / "model/config.json"));
  config["hidden_act"] = "gelu_new";
  config["layer_norm_eps"] = 1e-5;
  support::write_text(directory / "model/config.json", config.dump());
  const Outcome outcome = export_as("tf-checkpoint", directory / "model", directory / "other");
  CHECK(outcome.code == 0);
  CHECK(outcome.error.find(
            "warning: layer_norm_eps: Google's code computes with 1e-12, this model with 1e-05: its outputs differ "
            "there\nwarning: hidden_act: Google's code refuses gelu_new; hint: ") != std::string::npos);
}

TEST_CASE("export with strict takes its own checkpoint, and refuses tensors that the network does not have") {
  const support::TemporaryDirectory directory;
  support::write_small_labeller(directory / "model", {"O", "B-FISH", "I-FISH"});
  REQUIRE(export_as("tf-checkpoint", directory / "model", directory / "tf").code == 0);
  const auto copied = [&](const std::string& from) {
    return run_program("export", {"--model", directory / from, "--strict", "--format", "huggingface", "--output",
                                  directory / (from + "-copy")});
  };
  CHECK(copied("tf").code == 0);
  std::string config = read_text(directory / "model/config.json");
  config.replace(config.find("BertForTokenClassification"), 26, "BertModel");
  support::write_text(directory / "model/config.json", config);
  const Outcome outcome = copied("model");
  CHECK(outcome.code == 4);
  CHECK(outcome.error == "error: " + (directory / "model/model.safetensors").string() +
                             ": --strict: expected every tensor to fit, got 2 unused: classifier.bias, "
                             "classifier.weight\n");
}

TEST_CASE("a model with a number that is not finite is not exported") {
  const support::TemporaryDirectory directory;
  support::write_small_classifier(directory / "model");
  support::spoil_embedding(directory / "model/model.safetensors", 5);
  const Outcome outcome = export_as("onnx", directory / "model", directory / "copy");
  CHECK(outcome.code == 4);
  CHECK(outcome.error.find("model.safetensors: tensor \"bert.embeddings.word_embeddings.weight\": expected finite "
                           "numbers, got NaN or infinity") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(directory / "copy"));
}

TEST_CASE("a file that may not become so large is an error of output and leaves nothing") {
  const support::TemporaryDirectory directory;
  support::write_small_classifier(directory / "model");
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  const rlimit few{4096, before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_FSIZE, &few) == 0);
  const Outcome outcome = export_as("huggingface", directory / "model", directory / "copy");
  REQUIRE(setrlimit(RLIMIT_FSIZE, &before) == 0);
  CHECK(outcome.code == 5);
  CHECK(outcome.error.ends_with("model.safetensors: write: File too large\n"));  // of the disk's room nothing is said
  CHECK_FALSE(std::filesystem::exists(directory / "copy"));
}

TEST_CASE("a classifier of Google's without labels has as many as its tensors") {
  const support::TemporaryDirectory directory;
  support::write_small_classifier(directory / "model");
  REQUIRE(export_as("tf-checkpoint", directory / "model", directory / "tf").code == 0);
  auto config = nlohmann::json::parse(read_text(directory / "tf" / "bert_config.json"));
  for (const char* key : {"architectures", "id2label", "label2id"}) config.erase(key);
  support::write_text(directory / "tf" / "bert_config.json", config.dump());
  REQUIRE(export_as("huggingface", directory / "tf", directory / "copy").code == 0);
  config = nlohmann::json::parse(read_text(directory / "copy" / "config.json"));
  CHECK(config["architectures"] == nlohmann::json{"BertForSequenceClassification"});
  CHECK(config["id2label"].size() == 3);
  CHECK(read_text(directory / "model" / "model.safetensors") == read_text(directory / "copy" / "model.safetensors"));
}

TEST_CASE("export refuses an output that exists and leaves it as it is") {
  const support::TemporaryDirectory directory;
  support::write_small_classifier(directory / "model");
  support::write_text(directory / "copy", "mine");
  const Outcome outcome = export_as("huggingface", directory / "model", directory / "copy");
  CHECK(outcome.code == 2);
  CHECK(outcome.error == "error: --output: " + (directory / "copy").string() +
                             ": expected a name that is free, got a file; hint: remove it or name another\n");
  CHECK(read_text(directory / "copy") == "mine");
  std::filesystem::create_symlink("nothing", directory / "link");
  CHECK(export_as("huggingface", directory / "model", directory / "link").error.find("got a link to nothing") !=
        std::string::npos);
}

TEST_CASE("an export that fails leaves nothing") {
  const support::TemporaryDirectory directory;
  support::write_small_classifier(directory / "model");
  std::filesystem::remove(directory / "model" / "model.safetensors");
  CHECK(export_as("huggingface", directory / "model", directory / "copy").code == 4);
  CHECK_FALSE(std::filesystem::exists(directory / "copy"));
  CHECK(std::distance(std::filesystem::directory_iterator(directory / ""), {}) == 1);
}

TEST_CASE("export names the formats that it has") {
  const Outcome outcome = run_program("export", {"--model", "m", "--format", "hugging-face", "--output", "o"});
  CHECK(outcome.code == 2);
  CHECK(outcome.error.find("did you mean huggingface?") != std::string::npos);
}
