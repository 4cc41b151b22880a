// A network run forward: which batches are captured, and that none of them has other bits for it.
#include "bert/inference/forward.h"

#include <doctest/doctest.h>

#include "bert/inference/open.h"
#include "bert/network/golden.h"
#include "cuda_emulated/emulated_gpu.h"
#include "support/program.h"
#include "support/refusal.h"
#include "support/small_forward.h"
#include "tensor/profiler.h"

using namespace bertrand;
using bertrand::testing::emulated_gpu;
using support::sequences;
using support::SmallForward;

namespace {

using Lengths = std::vector<std::size_t>;

int launches() { return cuda::emulation::counts().launches; }

}  // namespace

TEST_CASE("a batch whose sizes come for the third time is captured, and has the bits of one that is not") {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    CAPTURE(name_of(dtype));
    const auto gpu = emulated_gpu();
    const SmallForward small(*gpu, dtype);
    inference::Forward forward = small.forward();
    for (std::uint64_t use = 1; use <= 6; ++use) {
      CAPTURE(use);
      const Lengths lengths = use % 2 == 0 ? Lengths{9, 4, 20} : Lengths{20, 5, 8};  // the same in total
      const auto batch = sequences(lengths, use);
      const std::vector<std::int32_t> rows = {static_cast<std::int32_t>(use), 32, 0};
      const std::vector<float> expected = small.expected(batch, rows);
      gpu->synchronize();
      const int before = launches(), runs = small.runs;
      const Tensor outputs = forward(batch, rows);
      CHECK((launches() == before + 1) == (use > 3));
      CHECK(small.runs - runs == (use < 3 ? 1 : use == 3 ? 2 : 0));
      CHECK(ops::to_host<float>(outputs) == expected);
    }
  }
}

TEST_CASE("batches that differ in any of their sizes do not share a capture") {
  const auto gpu = emulated_gpu();
  const SmallForward small(*gpu);
  inference::Forward forward = small.forward();
  const std::vector<std::int32_t> none, one = {3}, two = {3, 1};
  const std::pair<Lengths, std::vector<std::int32_t>> kinds[] = {
      {{9, 4}, none}, {{8, 5}, none}, {{13}, none}, {{12}, none}, {{13}, one}, {{13}, two}, {{9, 2, 2}, none}};
  for (std::uint64_t round = 1; round <= 5; ++round)
    for (const auto& [lengths, rows] : kinds) {
      CAPTURE(round);
      CAPTURE(lengths);
      const auto batch = sequences(lengths, round);
      const std::vector<float> expected = small.expected(batch, rows);
      const int runs = small.runs;
      CHECK(ops::to_host<float>(forward(batch, rows)) == expected);
      CHECK((small.runs == runs) == (round > 3));
    }
}

TEST_CASE("nothing is captured for many tokens, on the CPU, or while a profiler looks on") {
  const auto runs_of_each = [](Backend& backend, const Lengths& lengths, bool profiled) {
    const SmallForward small(backend, DType::f32, {.layers = 1});
    inference::Forward forward = small.forward();
    Profiler profiler;
    for (int use = 0; use < 3; ++use) forward(sequences(lengths, 1));
    if (profiled) backend.profiler = &profiler;
    small.runs = 0;
    for (int use = 0; use < 3; ++use) forward(sequences(lengths, 1));
    backend.profiler = nullptr;
    return small.runs;
  };
  const auto gpu = emulated_gpu();
  CHECK(runs_of_each(*gpu, {8}, false) == 0);
  CHECK(runs_of_each(*gpu, {8}, true) == 3);
  Lengths many(128, 8);
  CHECK(runs_of_each(*gpu, many, false) == 0);
  many.back() = 9;
  CHECK(runs_of_each(*gpu, many, false) == 3);
  CHECK(runs_of_each(golden::cpu(), {8}, false) == 3);
}

TEST_CASE("of many sizes those that came last keep their captures") {
  const auto gpu = emulated_gpu();
  const SmallForward small(*gpu, DType::f32, {.layers = 1});
  inference::Forward forward = small.forward();
  const auto runs = [&](std::size_t length) {
    const int before = small.runs;
    forward(sequences({length}, 1));
    return small.runs - before;
  };
  for (int use = 0; use < 3; ++use)
    for (std::size_t length = 1; length <= 64; ++length) runs(length);
  CHECK(runs(1) == 0);
  CHECK(runs(65) == 1);  // for which 2 goes
  CHECK(runs(1) == 0);
  CHECK(runs(3) == 0);
  CHECK(runs(2) == 1);
}

TEST_CASE("a batch that finds no memory gets that of the captures") {
  const auto gpu = emulated_gpu();
  const SmallForward small(*gpu, DType::f32, {.layers = 1});
  inference::Forward forward = small.forward();
  const auto large = sequences(Lengths(60, 10), 1), middle = sequences(Lengths(10, 20), 2);
  const std::vector<float> expected = small.expected(large, {});
  const std::size_t before = gpu->memory().in_use;
  forward(large);
  const std::size_t needed = gpu->memory().peak;
  for (int use = 0; use < 3; ++use) forward(middle);
  CHECK(gpu->memory().in_use > before);
  cuda::emulation::limit_memory(needed + 4096);
  CHECK(ops::to_host<float>(forward(large)) == expected);
  CHECK(gpu->memory().in_use == before);
  cuda::emulation::limit_memory(before + 4096);
  CHECK(support::refusal(Failure::memory, [&] { forward(large); }).starts_with("out of memory: "));
  cuda::emulation::limit_memory(std::size_t{16} << 30);
}

TEST_CASE("a capture that cannot be made, or whose work finds no memory to begin, is done without from then on") {
  const std::pair<int, void (*)()> failures[] = {{3, cuda::emulation::fail_instantiation},
                                                 {4, cuda::emulation::fail_graph_launch}};
  for (const auto& [failing_use, fail_next] : failures) {
    CAPTURE(failing_use);
    const auto gpu = emulated_gpu();
    const SmallForward small(*gpu);
    inference::Forward forward = small.forward();
    const auto batch = sequences({9, 4}, 1);
    const std::vector<float> expected = small.expected(batch, {});
    const std::size_t before = gpu->memory().in_use;
    for (int use = 1; use <= 6; ++use) {
      CAPTURE(use);
      if (use == failing_use) fail_next();
      const int runs = small.runs;
      CHECK(ops::to_host<float>(forward(batch)) == expected);
      if (use < failing_use) continue;
      CHECK(gpu->memory().in_use == before);
      CHECK((use == failing_use || small.runs == runs + 1));
    }
  }
}

TEST_CASE("work whose outputs take more than 4 MiB is not captured, so that captures keep little memory") {
  const auto gpu = emulated_gpu();
  for (const Dim width : {1 << 17, (1 << 17) + 1}) {
    inference::Forward forward(*gpu, [&](const bert::PackedBatch& batch, const Tensor&) {
      return Variable(ops::full({batch.tokens, width}, 1, DType::f32, *gpu));
    });
    for (int use = 1; use <= 3; ++use) forward(sequences({8}, 1));
    const int before = launches();
    forward(sequences({8}, 1));
    const auto kept = gpu->memory().in_use;
    CHECK((kept > 0) == (width == 1 << 17));
    CHECK(launches() > before);
  }
}

TEST_CASE("every predictor on a GPU says the same of sequences whether they are captured or not") {
  using inference::Head;
  for (const auto& [folder, head] : {std::pair{"classification", Head::classify},
                                     {"question_answering", Head::answer},
                                     {"token", Head::tokens},
                                     {"pretraining_gelu", Head::fill_mask},
                                     {"pretraining_gelu", Head::embed}}) {
    if (!golden::present(folder)) return;
    CAPTURE(folder);
    const golden::Case golden(folder);
    const auto gpu = emulated_gpu();
    const support::TemporaryDirectory directory;
    std::string vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n";
    const std::int32_t mask = golden.sequences()[0].token_ids[1];
    for (int id = 4; id < 120; ++id) vocabulary += id == mask ? "[MASK]\n" : "w" + std::to_string(id) + "\n";
    support::write_text(directory / "vocab.txt", vocabulary);
    const auto predictor = inference::open(
        {.directory = golden.directory, .tokenizer = {.vocab_file = directory / "vocab.txt"}, .backend = *gpu}, head,
        {.windows = {.max_query_length = 8}});
    const auto given = golden.sequences();
    const std::vector<inference::Outputs> first = predictor->run(given);
    for (int use = 2; use <= 5; ++use) {
      const int before = launches();
      const std::vector<inference::Outputs> again = predictor->run(given);
      CHECK((launches() == before + 1) == (use > 3));
      REQUIRE(again.size() == first.size());
      for (std::size_t i = 0; i < first.size(); ++i) CHECK(again[i].values == first[i].values);
    }
  }
}
