// The flags of export: which option each is, and what those do of which no other test makes use.
#include <doctest/doctest.h>

#include "apps/export/run.h"
#include "support/parsed.h"
#include "support/small_heads.h"

using namespace bertrand;
using support::Flags;
using support::parsed;
using support::read_text;

TEST_CASE("every flag of export is the option of its name") {
  const auto o = parsed<exporting::Options>(
      "--model m --format onnx --output o --vocab-file words --cased --external-data --strict", Flags::every);
  CHECK(o.source.model == "m");
  CHECK(io::name_in(exporting::formats(), o.format) == "onnx");
  CHECK(o.output == "o");
  CHECK(o.source.tokenizer.vocab_file == "words");
  for (const std::string flag : {"--cased", "--external-data", "--strict"}) {
    CAPTURE(flag);
    const auto one = parsed<exporting::Options>("--model m --format onnx --output o " + flag);
    CHECK(one.source.tokenizer.cased == (flag == "--cased"));
    CHECK(one.external_data == (flag == "--external-data"));
    CHECK(one.source.strict == (flag == "--strict"));
  }
}

TEST_CASE("an exported model has the vocabulary of --vocab-file, with or without capitals") {
  const support::TemporaryDirectory directory;
  support::write_small_classifier(directory / "model");
  for (const char* name : {"tokenizer.json", "tokenizer_config.json"})
    std::filesystem::remove(directory / "model" / name);
  std::filesystem::rename(directory / "model/vocab.txt", directory / "words");
  const auto exported = [&](const std::string& name, const std::vector<std::string>& more) {
    return support::run_program(
        "export", support::with_defaults(
                      {"--model", directory / "model", "--format", "huggingface", "--output", directory / name}, more));
  };
  CHECK(exported("none", {}).code == 4);
  for (const bool cased : {false, true}) {
    CAPTURE(cased);
    const std::string name = cased ? "cased" : "lower";
    std::vector<std::string> flags = {"--vocab-file", directory / "words"};
    if (cased) flags.push_back("--cased");
    REQUIRE(exported(name, flags).code == 0);
    CHECK(read_text(directory / name / "vocab.txt") == read_text(directory / "words"));
    const auto config = nlohmann::json::parse(read_text(directory / name / "tokenizer_config.json"));
    CHECK(config.at("do_lower_case") == !cased);
  }
}
