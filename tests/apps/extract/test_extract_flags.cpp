// The flags of extract: which option each is, and what those do of which no other test makes use.
#include <doctest/doctest.h>

#include "apps/extract/run.h"
#include "support/parsed.h"
#include "support/small_heads.h"

using namespace bertrand;
using support::Flags;
using support::Outcome;
using support::parsed;

TEST_CASE("every flag of extract is the option of its name") {
  const auto o = parsed<extract::Options>(
      "--model m --input i --output o --layers 1 --pooled --pooling cls --normalize --max-seq-length 11 --batch-size "
      "12 --vocab-file words --cased --precision bf16 --strict --threads 13 --cpu-kernels x86-64-v3",
      Flags::every);
  CHECK(o.model == "m");
  CHECK(o.input == "i");
  CHECK(o.output == "o");
  CHECK(o.layers == "1");
  CHECK(o.pooling == inference::Pooling::cls);
  CHECK(o.max_seq_length == 11);
  CHECK(o.batch_size == 12);
  CHECK(o.tokenizer.vocab_file == "words");
  CHECK(o.precision == DType::bf16);
  CHECK(o.threads == 13);
  CHECK(o.cpu_kernels == "x86-64-v3");
  for (const std::string flag : {"--pooled", "--normalize", "--cased", "--strict"}) {
    CAPTURE(flag);
    const auto one = parsed<extract::Options>("--model m --input i --output o " + flag);
    CHECK(one.pooled == (flag == "--pooled"));
    CHECK(one.normalize == (flag == "--normalize"));
    CHECK(one.tokenizer.cased == (flag == "--cased"));
    CHECK(one.strict == (flag == "--strict"));
  }
}

TEST_CASE("extract refuses tensors in strict, and has the kernels and the capitals that it is told") {
  const support::TemporaryDirectory directory;
  support::write_small_model(directory / "encoder");
  support::write_small_classifier(directory / "classifier");
  support::write_text(directory / "lines", "Red fish\n");
  const auto run = [&](const std::string& model, const std::vector<std::string>& more) {
    std::vector<std::string> flags = {"--model",  directory / model,      "--input",   directory / "lines",
                                      "--output", directory / "features", "--threads", "1"};
    flags.insert(flags.end(), more.begin(), more.end());
    return support::run_program("extract", flags);
  };
  const auto features = [&](const std::vector<std::string>& more) {
    CHECK(run("encoder", more).code == 0);
    return support::read_text(directory / "features");
  };
  const std::string expected = features({});
  CHECK(features({"--cpu-kernels", runnable_cpu_kernels().back()}) == expected);
  CHECK(features({"--strict", "--pooled"}) != expected);
  const Outcome kernels = run("encoder", {"--cpu-kernels", "none"});
  CHECK(kernels.code == 2);
  CHECK(kernels.error.starts_with("error: --cpu-kernels: expected "));
  CHECK(run("classifier", {"--pooled"}).code == 0);
  const Outcome strict = run("classifier", {"--pooled", "--strict"});
  CHECK(strict.code == 4);
  CHECK(strict.error.find("--strict: expected every tensor to fit, got 2 unused: classifier.bias, ") !=
        std::string::npos);

  for (const char* name : {"tokenizer.json", "tokenizer_config.json"})
    std::filesystem::remove(directory / "encoder" / name);
  std::filesystem::rename(directory / "encoder/vocab.txt", directory / "words");
  CHECK(run("encoder", {}).code == 4);
  CHECK(features({"--vocab-file", directory / "words"}) == expected);
  CHECK(features({"--vocab-file", directory / "words", "--cased"}) != expected);  // "Red" is no word of it
}
