// The flags of predict: which option each is, and what those do of which no other test makes use.
#include <doctest/doctest.h>

#include "apps/predict/options.h"
#include "support/parsed.h"
#include "support/small_heads.h"

using namespace bertrand;
using support::Flags;
using support::Outcome;
using support::parsed;

namespace {

/// Runs predict on a text, with the model in "model".
Outcome answer(const support::TemporaryDirectory& directory, const std::string& text,
               const std::vector<std::string>& more) {
  support::write_text(directory / "lines", text);
  return support::run_program(
      "predict",
      support::with_defaults({"--model", directory / "model", "--input", directory / "lines", "--threads", "1"}, more));
}

}  // namespace

TEST_CASE("every flag of predict is the option of its name") {
  const auto o = parsed<predict::Options>(
      "--model m --input i --output o --input-format jsonl --on-bad-line report --with-text --vocab-file words --cased "
      "--strict --task answer --max-seq-length 11 --top-k 12 --pooling cls --normalize --doc-stride 13 "
      "--max-query-length 14 --n-best-size 15 --max-answer-length 16 --null-score-diff-threshold 1.5 --device cuda:1 "
      "--precision tf32 --threads 17 --cpu-kernels x86-64-v3 --max-batch-tokens 18",
      Flags::every);
  CHECK(o.model == "m");
  CHECK(o.input == "i");
  CHECK(o.output == "o");
  CHECK(o.form == predict::Form::jsonl);
  CHECK(o.report_bad_lines);
  CHECK(o.tokenizer.vocab_file == "words");
  CHECK(o.head == inference::Head::answer);
  CHECK(o.inference.max_seq_length == 11);
  CHECK(o.inference.top_k == 12);
  CHECK(o.inference.pooling == inference::Pooling::cls);
  CHECK(o.doc_stride == 13);
  CHECK(o.inference.windows.max_query_length == 14);
  CHECK(o.inference.answers.n_best_size == 15);
  CHECK(o.inference.answers.max_answer_length == 16);
  CHECK(o.null_threshold == 1.5);
  CHECK(o.machine.device == "cuda:1");
  CHECK(o.machine.precision_name() == "tf32");
  CHECK(o.machine.threads == 17);
  CHECK(o.machine.cpu_kernels == "x86-64-v3");
  CHECK(o.max_batch_tokens == 18);
}

TEST_CASE("a switch of predict is the option of its name alone") {
  for (const std::string flag : {"--with-text", "--cased", "--strict", "--normalize"}) {
    CAPTURE(flag);
    const auto o = parsed<predict::Options>("--model m " + flag);
    CHECK(o.with_text == (flag == "--with-text"));
    CHECK(o.tokenizer.cased == (flag == "--cased"));
    CHECK(o.strict == (flag == "--strict"));
    CHECK(o.inference.normalize == (flag == "--normalize"));
  }
}

TEST_CASE("--doc-stride says where the windows of a long text begin, and without it they have their default") {
  const support::TemporaryDirectory directory;
  std::string words;
  for (int i = 0; i < 12; ++i) words += i % 3 ? "red fish one " : "the bird two green ";
  struct Case {
    std::string head, text, usual, other;  ///< that is as none, and one that makes other windows
  };
  for (const Case& c : {Case{"tokens", words, "3", "1"}, Case{"answer", "the ||| " + words, "128", "1"}}) {
    CAPTURE(c.head);
    if (c.head == "tokens") support::write_small_labeller(directory / "model", {"O", "B-A", "I-A"});
    else
      support::write_small_head<bert::ForQuestionAnswering>(directory / "model",
                                                            {.architecture = "BertForQuestionAnswering"});
    const auto with = [&](const std::string& stride) {
      std::vector<std::string> flags = {"--max-seq-length", "16"};
      if (!stride.empty()) flags.insert(flags.end(), {"--doc-stride", stride});
      const Outcome outcome = answer(directory, c.text, flags);
      CHECK(outcome.code == 0);
      return outcome.out;
    };
    CHECK(with("") == with(c.usual));
    CHECK(with("") != with(c.other));
  }
}

TEST_CASE("predict takes the vocabulary that it is given, refuses tensors in strict, and has the kernels it is told") {
  const support::TemporaryDirectory directory;
  support::write_small_classifier(directory / "model");
  const std::string text = "Red fish\n", expected = answer(directory, text, {}).out;
  CHECK_FALSE(expected.empty());
  CHECK(answer(directory, text, {"--cpu-kernels", runnable_cpu_kernels().back(), "--strict"}).out == expected);
  const Outcome kernels = answer(directory, text, {"--cpu-kernels", "none"});
  CHECK(kernels.code == 2);
  CHECK(kernels.error.starts_with("error: --cpu-kernels: expected "));
  const Outcome strict = answer(directory, text, {"--task", "embed", "--strict"});
  CHECK(strict.code == 4);
  CHECK(strict.error.find("--strict: expected every tensor to fit, got ") != std::string::npos);

  for (const char* name : {"tokenizer.json", "tokenizer_config.json"})
    std::filesystem::remove(directory / "model" / name);
  std::filesystem::rename(directory / "model/vocab.txt", directory / "words");
  CHECK(answer(directory, text, {}).code == 4);
  CHECK(answer(directory, text, {"--vocab-file", directory / "words"}).out == expected);
  const Outcome cased = answer(directory, text, {"--vocab-file", directory / "words", "--cased"});
  CHECK(cased.code == 0);
  CHECK(cased.out != expected);  // "Red" is no word of it
}
