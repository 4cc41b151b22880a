// SavedModels as files: their place, their variables, and what is left if writing fails.
#include <doctest/doctest.h>

#include "apps/export/place.h"
#include "apps/export/run.h"
#include "bert/export/decoded_saved_model.h"
#include "bert/export/tf_graph.h"
#include "io/tensor_bundle.h"
#include "support/faulty_files.h"
#include "support/program.h"
#include "support/refusal.h"
#include "support/small_heads.h"

using namespace bertrand;
using exporting::next_version;
using support::read_text;
using support::run_program;
namespace fs = std::filesystem;

namespace {

support::Outcome export_as(const std::string& format, const fs::path& model, const fs::path& output) {
  return run_program("export", {"--model", model.string(), "--format", format, "--output", output.string()});
}

/// All files below a directory with their bytes.
std::map<std::string, std::string> files_below(const fs::path& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(directory))
    if (entry.is_regular_file()) files[entry.path().lexically_relative(directory).string()] = read_text(entry.path());
  return files;
}

std::vector<std::string> names_in(const fs::path& directory) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory)) names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

}  // namespace

TEST_CASE("export writes a SavedModel as version 1 and the next one beside it") {
  const support::TemporaryDirectory directory;
  support::write_small_classifier(directory / "model");
  const auto first = export_as("saved-model", directory / "model", directory / "served");
  CHECK(first.error.find((directory / "served/1").string() + ": BertForSequenceClassification as saved-model\n") !=
        std::string::npos);
  REQUIRE(first.code == 0);
  REQUIRE(export_as("saved-model", directory / "model", directory / "served/").code == 0);
  CHECK(names_in(directory / "served") == std::vector<std::string>{"1", "2"});
  const auto files = files_below(directory / "served/1");
  CHECK(files == files_below(directory / "served/2"));
  std::vector<std::string> names;
  for (const auto& [name, bytes] : files) names.push_back(name);
  CHECK(names == std::vector<std::string>{"assets.extra/config.json", "assets.extra/tokenizer.json",
                                          "assets.extra/tokenizer_config.json", "assets.extra/vocab.txt",
                                          "saved_model.pb", "variables/variables.data-00000-of-00001",
                                          "variables/variables.index"});
  for (const char* name : {"config.json", "vocab.txt", "tokenizer.json", "tokenizer_config.json"})
    CHECK(files.at(std::string("assets.extra/") + name) == read_text(directory / "model" / name));
}

TEST_CASE("the variables of a SavedModel are those that its graph restores") {
  const support::TemporaryDirectory directory;
  support::write_small_head<bert::ForPretraining>(directory / "model", {.architecture = "BertForPreTraining"});
  REQUIRE(export_as("saved-model", directory / "model", directory / "served").code == 0);
  const auto graph = support::decode_saved_model(read_text(directory / "served/1/saved_model.pb"));
  const io::BundleFile variables(directory / "served/1/variables/variables");
  std::vector<std::string> names;
  for (const io::BundleEntry& entry : variables.entries()) {
    names.push_back(entry.name);
    REQUIRE(graph.find(entry.name));
    CHECK(graph.find(entry.name)->attributes.at("shape") == exporting::tf::attribute::shape(entry.dims));
  }
  CHECK(graph.find(graph.find("save/RestoreV2")->inputs.at(1))->texts == names);
}

TEST_CASE("a SavedModel and its variables are models that give back the same weights") {
  const support::TemporaryDirectory directory;
  const fs::path model = directory / "model", served = directory / "served/1";
  support::write_small_labeller(model, {"O", "B-LOC", "I-LOC"});
  REQUIRE(export_as("saved-model", model, directory / "served").code == 0);
  int copies = 0;
  for (const fs::path& from : {served, served / "variables" / "variables", served / "variables/variables.index"}) {
    const fs::path copy = directory / ("copy" + std::to_string(++copies));
    REQUIRE(export_as("huggingface", from, copy).code == 0);
    CHECK(files_below(copy) == files_below(model));
  }
}

TEST_CASE("the next version is one more than the highest number") {
  const support::TemporaryDirectory directory;
  const fs::path base = directory / "served";
  CHECK(next_version(base).files_in(base) == base / "1");
  for (const auto& [name, next] : std::vector<std::pair<std::string, std::string>>{{"notes", "1"},
                                                                                   {"-5", "1"},
                                                                                   {"500x", "1"},
                                                                                   {"00000123", "124"},
                                                                                   {"99", "124"},
                                                                                   {"999999999999999999999", "124"}}) {
    fs::create_directories(base / name);
    CHECK(next_version(base).directory == base / next);
    CHECK(next_version(base).files_in(base / next) == base / next);
  }
  fs::create_directories(base / "9223372036854775807");
  CHECK(support::refusal(Failure::usage, [&] { next_version(base); }) ==
        "--output: " + base.string() +
            ": expected versions below 9223372036854775807, got this one; hint: name another directory");
}

TEST_CASE("a model is no directory of versions") {
  const support::TemporaryDirectory directory;
  support::write_small_classifier(directory / "model");
  const auto into_model = export_as("saved-model", directory / "model", directory / "model");
  CHECK(into_model.code == 2);
  CHECK(into_model.error.find("model: expected a directory of versions, 1 and so on, got one with ") !=
        std::string::npos);
  fs::create_directories(directory / "served/1");
  support::write_text(directory / "served/1/saved_model.pb", "");
  const auto into_version = export_as("saved-model", directory / "model", directory / "served/1");
  CHECK(into_version.code == 2);
  CHECK(into_version.error == "error: --output: " + (directory / "served/1").string() +
                                  ": expected a directory of versions, 1 and so on, got one with saved_model.pb; "
                                  "hint: name the directory above it\n");
}

TEST_CASE("a SavedModel whose output cannot be made is refused and leaves nothing") {
  const support::TemporaryDirectory directory;
  support::write_small_classifier(directory / "model");
  support::write_text(directory / "file", "mine");
  CHECK(export_as("saved-model", directory / "model", directory / "file").code == 2);
  CHECK(read_text(directory / "file") == "mine");
  CHECK(export_as("saved-model", directory / "model", directory / "none/served").code == 2);
  CHECK(export_as("saved-model", directory / "none", directory / "served").code == 4);
  CHECK(names_in(directory / "") == std::vector<std::string>{"file", "model"});
}

TEST_CASE("a SavedModel of a problem type that is none is refused with the file that says it") {
  const support::TemporaryDirectory directory;
  support::write_small_head<bert::ForSequenceClassification>(
      directory / "model",
      {.architecture = "BertForSequenceClassification", .labels = {"a", "b"}, .problem_type = "multi_label"}, 2);
  const auto outcome = export_as("saved-model", directory / "model", directory / "served");
  CHECK(outcome.code == 4);
  CHECK(outcome.error.find("error: " + (directory / "model/config.json").string() + ": problem_type: expected ") !=
        std::string::npos);
}

TEST_CASE("a disk that fails leaves a SavedModel whole or not there") {
  const support::TemporaryDirectory directory;
  support::write_small_classifier(directory / "model");
  for (const bool is_first : {true, false}) {
    const fs::path base = directory / (is_first ? "new" : "served"), version = base / (is_first ? "1" : "2");
    const exporting::Options options{.source = {.model = directory / "model", .tokenizer = {}},
                                     .format = {.write = exporting::write_saved_model, .has_versions = true},
                                     .output = base};
    if (!is_first) fs::create_directories(base / "1");
    bool is_written = false;
    for (int failing = 1; !is_written; ++failing) {
      CAPTURE(failing);
      support::FailingFiles files(failing, "No space left on device");
      const std::string refusal = support::refusal(Failure::io, [&] { exporting::run(options, files); });
      is_written = refusal.empty();
      REQUIRE(failing < 100);
      for (const std::string& name : names_in(directory / "")) CHECK(name.find(".tmp-") == std::string::npos);
      if (fs::exists(base))
        for (const std::string& name : names_in(base)) CHECK(name.find(".tmp-") == std::string::npos);
      CHECK((!fs::exists(version) || files_below(version).size() == 7));
      if (!is_written) fs::remove_all(version);  // it is there if only the last call failed
      if (is_first && !is_written) fs::remove_all(base);
    }
    CHECK(files_below(version).size() == 7);
  }
}
