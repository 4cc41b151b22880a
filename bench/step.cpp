// Times one training step or one inference of a random BERT: the same work as PyTorch's side of bench/compare.sh.
//   step tiny|mini|small|base THREADS train|infer [BATCH] [SECONDS]
// Prints one JSON line: seconds a step (median, least), GFLOP/s, peak memory.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "bert/model/heads.h"
#include "optim/optimizer.h"
#include "tensor/backends.h"
#include "tensor/profiler.h"
#include "tensor/random.h"

using namespace bertrand;

namespace {

struct Shape5 {
  const char* name;
  Dim layers, hidden, heads, intermediate, batch;
};
constexpr Shape5 kShapes[] = {{"tiny", 2, 128, 2, 512, 32},
                              {"mini", 4, 256, 4, 1024, 32},
                              {"small", 6, 384, 12, 1536, 16},
                              {"base", 12, 768, 12, 3072, 8}};
constexpr Dim kLength = 128, kMasked = 20;

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: step tiny|mini|small|base THREADS train|infer [BATCH] [SECONDS] [profile]\n");
    return 2;
  }
  const Shape5* shape = std::find_if(std::begin(kShapes), std::end(kShapes),
                                     [&](const Shape5& s) { return std::strcmp(s.name, argv[1]) == 0; });
  if (shape == std::end(kShapes)) return 2;
  const bool train = std::strcmp(argv[3], "train") == 0;
  const Dim batch_size = argc > 4 && std::atoi(argv[4]) > 0 ? std::atoi(argv[4]) : train ? shape->batch : 1;
  const double budget = argc > 5 ? std::atof(argv[5]) : 10;

  const auto backend = open_cpu({.threads = std::atoi(argv[2])});
  bert::Config config;
  config.num_hidden_layers = shape->layers;
  config.hidden_size = shape->hidden;
  config.num_attention_heads = shape->heads;
  config.intermediate_size = shape->intermediate;
  bert::ForPretraining model(config);
  nn::ParameterSet parameters(model, *backend);

  Random random(1);
  std::vector<bert::Sequence> sequences;
  std::vector<std::int32_t> rows, labels, next;
  for (Dim b = 0; b < batch_size; ++b) {
    bert::Sequence s{.key = static_cast<std::uint64_t>(b)};
    for (Dim t = 0; t < kLength; ++t) {
      s.token_ids.push_back(static_cast<std::int32_t>(random.below(30522)));
      s.token_types.push_back(t < kLength / 2 ? 0 : 1);
    }
    sequences.push_back(s);
    for (Dim m = 0; m < kMasked; ++m) {
      rows.push_back(static_cast<std::int32_t>(b * kLength + 6 * m));
      labels.push_back(static_cast<std::int32_t>(random.below(30522)));
    }
    next.push_back(static_cast<std::int32_t>(random.below(2)));
  }
  const auto masked = static_cast<Dim>(rows.size());
  const bert::PackedBatch batch = bert::pack(sequences, *backend);
  const bert::ForPretraining::Targets targets{
      ops::from_host(rows, {masked}, *backend), ops::from_host(labels, {masked}, *backend),
      ops::from_host(next, {batch_size}, *backend), static_cast<double>(masked), static_cast<double>(batch_size)};

  std::unique_ptr<optim::Optimizer> optimizer;
  if (train)
    optimizer =
        std::make_unique<optim::Optimizer>(parameters, optim::Options{.method = optim::Method::adamw, .epsilon = 1e-8});
  double loss = 0;
  const auto step = [&](std::uint64_t number) {
    if (!train) {
      const NoGrad guard;
      const Variable x = model.bert(batch, {});
      (*model.bert.pooler)(x, batch);
      return;
    }
    parameters.zero_gradients();
    const auto result = model(batch, targets, batch.randomness(number), bert::ForPretraining::Keep::losses);
    const Variable total = add(result.masked_lm_loss, result.next_sentence_loss);
    backward(total);
    parameters.complete_gradients();
    loss = ops::item(total.value());
    optimizer->step(1e-4);
  };
  step(0);
  step(1);
  Profiler profiler;
  if (argc > 6) backend->profiler = &profiler;
  std::vector<double> times;
  const double start = seconds_now();
  while (times.size() < 4 || (seconds_now() - start < budget && times.size() < 400)) {
    const double begin = seconds_now();
    step(times.size() + 2);
    times.push_back(seconds_now() - begin);
  }
  std::sort(times.begin(), times.end());
  const double median = times[times.size() / 2];
  const auto real = [](Dim n) { return static_cast<double>(n); };
  const double tokens = real(batch_size * kLength), h = real(config.hidden_size), i = real(config.intermediate_size);
  const double encoder = real(config.num_hidden_layers) *
                         (2 * tokens * (4 * h * h + 2 * h * i) + 4 * real(batch_size * kLength * kLength) * h);
  const double head = 2 * real(masked) * (h * h + h * 30522);
  const double flops = train ? 3 * (encoder + head) : encoder + 2 * real(batch_size) * h * h;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf(
      "{\"config\":\"%s\",\"mode\":\"%s\",\"threads\":%s,\"batch\":%lld,\"n\":%zu,\"median_s\":%.5f,\"min_s\":%.5f,"
      "\"gflops\":%.1f,\"best_gflops\":%.1f,\"rss_MB\":%ld,\"tensors_MB\":%zu,\"loss\":%.4f}\n",
      shape->name, argv[3], argv[2], static_cast<long long>(batch_size), times.size(), median, times.front(),
      flops / median / 1e9, flops / times.front() / 1e9, usage.ru_maxrss / 1024, backend->memory().peak >> 20, loss);
  if (argc > 6) std::fputs(profiler.table().c_str(), stderr);
}
