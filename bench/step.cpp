// Times training steps or inferences of a random BERT: the same work as PyTorch's side of bench/compare.sh and
// bench/gpu.sh. Prints one JSON line: time a step (median, least, and p10, p90 of the blocks), rates, GFLOP/s, peak
// memory, the last loss.
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iterator>
#include <map>

#include "autograd/recompute.h"
#include "bert/inference/forward.h"
#include "bert/network/heads.h"
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
                              {"minilm", 6, 384, 12, 1536, 16},
                              {"base", 12, 768, 12, 3072, 8},
                              {"large", 24, 1024, 16, 4096, 8}};
constexpr Dim kBatches = 8;  // that take turns
constexpr std::int32_t kFirstWord = 999;

struct Arguments {
  std::string config, mode, device = "cpu", kernels = "auto", precision = "f32", lengths = "full", head = "pretrain",
                            profile;
  int threads = 1, block = 1, recompute = 0;
  Dim batch = 0, length = 128, vocabulary = 30522;
  double seconds = 10;
  bool measured = false;
};

const std::map<std::string, DType> kPrecisions{
    {"f32", DType::f32}, {"tf32", DType::f32}, {"bf16", DType::bf16}, {"f16", DType::f16}};

std::unique_ptr<Backend> open(const Arguments& a) {
  if (a.device == "cpu") return open_cpu({.threads = a.threads, .kernels = a.kernels});
  const bool emulated = a.device.starts_with("emulated-");
  const std::size_t colon = a.device.find(':');
  return open_cuda({.index = colon == std::string::npos ? 0 : std::stoi(a.device.substr(colon + 1)),
                    .emulated = emulated,
                    .tf32 = a.precision == "tf32",
                    .measured_products = a.measured});
}

/// Tokens of one sequence: all, or drawn as bench/gpu.sh's peer draws them (Wikipedia's articles at 512, MRPC's pairs).
Dim draw_length(const Arguments& a, Random& random) {
  const auto normal = [&](double mean, double deviation) {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += random.uniform();
    return mean + deviation * sum;
  };
  double length = static_cast<double>(a.length);
  if (a.lengths == "mrpc") length = normal(53, 12);
  if (a.lengths == "wikipedia") {
    const auto kind = random.below(3);
    length = kind == 0 ? 16 + random.uniform() * (length - 16) : kind == 1 ? length : normal(200, 90);
  }
  return std::clamp(static_cast<Dim>(length), Dim{std::min<Dim>(16, a.length)}, a.length);
}

Dim masked_tokens(const Arguments& a, Dim length) {
  if (a.lengths == "full" && a.length == 128) return 20;
  if (a.lengths == "full" && a.length == 512) return 76;
  return std::clamp<Dim>((length * 15 + 50) / 100, 1, length - 1);
}

/// What a step reads, on the device, and the sequences, which inference uploads itself.
struct Batch {
  std::vector<bert::Sequence> sequences;
  bert::PackedBatch packed;
  bert::ForPretraining::Targets targets;
  double squares = 0;  ///< Σ length²
};

Batch make_batch(const Arguments& a, Dim number, Backend& backend) {
  Random random(static_cast<std::uint64_t>(number) + 1);
  std::vector<bert::Sequence> sequences;
  std::vector<std::int32_t> rows, labels, next;
  const auto word = [&] {
    return kFirstWord + static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(30522 - kFirstWord)));
  };
  Dim first = 0;
  double squares = 0;
  for (Dim b = 0; b < a.batch; ++b) {
    bert::Sequence s{.key = static_cast<std::uint64_t>(number * a.batch + b)};
    const Dim length = draw_length(a, random), masked = masked_tokens(a, length);
    for (Dim t = 0; t < length; ++t) {
      s.token_ids.push_back(word());
      s.token_types.push_back(t < length / 2 ? 0 : 1);
    }
    for (Dim m = 0; m < masked; ++m) {
      rows.push_back(static_cast<std::int32_t>(first + m * length / masked));
      labels.push_back(word());
    }
    next.push_back(static_cast<std::int32_t>(random.below(2)));
    first += length;
    squares += static_cast<double>(length * length);
    sequences.push_back(std::move(s));
  }
  const auto masked = static_cast<Dim>(rows.size());
  bert::PackedBatch packed = bert::pack(sequences, backend);
  return {std::move(sequences),
          std::move(packed),
          {ops::from_host(rows, {masked}, backend), ops::from_host(labels, {masked}, backend),
           ops::from_host(next, {a.batch}, backend), static_cast<double>(masked), static_cast<double>(a.batch)},
          squares};
}

/// The model, its optimizer and the work of one step.
class Work {
 public:
  Work(const Arguments& a, const bert::Config& config, Backend& backend)
      : train_(a.mode == "train"),
        recompute_(a.recompute),
        forward_(backend, [this](const bert::PackedBatch& batch, const Tensor&) { return pooled(batch); }) {
    if (a.head == "classify") classifier_ = std::make_unique<bert::ForSequenceClassification>(config, 2);
    else pretraining_ = std::make_unique<bert::ForPretraining>(config);
    nn::Module& model = classifier_ ? static_cast<nn::Module&>(*classifier_) : *pretraining_;
    parameters_ = std::make_unique<nn::ParameterSet>(model, backend,
                                                     nn::ParameterSet::Options{.dtype = kPrecisions.at(a.precision)});
    if (train_)
      optimizer_ = std::make_unique<optim::Optimizer>(*parameters_,
                                                      optim::Options{.method = optim::Method::adamw, .epsilon = 1e-8});
  }

  /// Leaves what it computes on the device: the loss, or the pooled rows. Inference goes the way of programs that
  /// answer: it uploads its sequences each time, which PyTorch's side does not, and small batches are captured.
  Tensor step(const Batch& batch, std::uint64_t number) {
    if (!train_) return forward_(batch.sequences);
    parameters_->zero_gradients();
    Variable loss;
    {
      const Recomputing guard(recompute_);
      loss = this->loss(batch, number);
    }
    backward(loss, optimizer_->loss_scale().gradient_of_loss());
    parameters_->complete_gradients();
    optimizer_->update(1e-4, parameters_->gradients());
    return loss.value();
  }

 private:
  Variable pooled(const bert::PackedBatch& batch) const {
    const bert::Bert& bert = classifier_ ? classifier_->bert : pretraining_->bert;
    return (*bert.pooler)(gather_rows(bert(batch, {}), batch.first_rows));
  }

  Variable loss(const Batch& batch, std::uint64_t number) const {
    const nn::Randomness randomness = batch.packed.randomness(number);
    if (classifier_)
      return softmax_cross_entropy((*classifier_)(batch.packed, randomness), batch.targets.next_sentence,
                                   batch.targets.sequence_count);
    const auto result = (*pretraining_)(batch.packed, batch.targets, randomness, bert::ForPretraining::Keep::losses);
    return add(result.masked_lm_loss, result.next_sentence_loss);
  }

  bool train_;
  int recompute_;
  std::unique_ptr<bert::ForPretraining> pretraining_;
  std::unique_ptr<bert::ForSequenceClassification> classifier_;
  std::unique_ptr<nn::ParameterSet> parameters_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  inference::Forward forward_;
};

/// Multiplications and additions of the mean step, forward and, where it trains, twice that for backward: those that
/// are done. Training's last layer is computed, behind attention, for the rows that are read.
double flops_of_step(const Arguments& a, const bert::Config& config, const std::vector<Batch>& batches) {
  double tokens = 0, squares = 0, masked = 0;
  for (const Batch& b : batches) {
    tokens += static_cast<double>(b.packed.tokens) / static_cast<double>(batches.size());
    squares += b.squares / static_cast<double>(batches.size());
    masked += b.targets.masked_count / static_cast<double>(batches.size());
  }
  const auto h = static_cast<double>(config.hidden_size), i = static_cast<double>(config.intermediate_size);
  const double layers = static_cast<double>(config.num_hidden_layers), behind_attention = 2 * (h * h + 2 * h * i);
  const double encoder = layers * (tokens * (6 * h * h + behind_attention) + 4 * squares * h);
  if (a.mode != "train") return encoder + 2 * static_cast<double>(a.batch) * h * h;
  if (a.head == "classify") masked = 0;
  const double not_read = tokens - static_cast<double>(a.batch) - masked;
  return 3 * (encoder - not_read * behind_attention + 2 * masked * (h * h + h * static_cast<double>(a.vocabulary)));
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Seconds of a step over each block, and what the host took to ask for the first of them.
struct Times {
  std::vector<double> steps, host;
  double warm_up = 0;
};

void print(const Arguments& a, const Backend& backend, Times times, double flops, double tokens, double loss) {
  std::sort(times.steps.begin(), times.steps.end());
  std::sort(times.host.begin(), times.host.end());
  const std::vector<double>& steps = times.steps;
  const double median = steps[steps.size() / 2];
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  fmt::print(
      "{{\"config\":\"{}\",\"mode\":\"{}\",\"device\":\"{}\",\"precision\":\"{}\",\"threads\":{},\"batch\":{},"
      "\"length\":{},\"n\":{},",
      a.config, a.mode, backend.description(), a.precision, a.threads, a.batch, a.length, steps.size());
  fmt::print(
      "\"median_s\":{:.6f},\"min_s\":{:.6f},\"ms\":{:.4f},\"ms_p10\":{:.4f},\"ms_p90\":{:.4f},\"host_ms\":{:.4f},"
      "\"sequences_per_s\":{:.1f},\"real_tokens_per_s\":{:.0f},",
      median, steps.front(), median * 1e3, steps[steps.size() / 10] * 1e3,
      steps[steps.size() - 1 - steps.size() / 10] * 1e3, times.host[times.host.size() / 2] * 1e3,
      static_cast<double>(a.batch) / median, tokens / median);
  fmt::print(
      "\"gflops\":{:.1f},\"best_gflops\":{:.1f},\"gflop_per_step\":{:.2f},\"warm_up_s\":{:.2f},\"rss_MB\":{},\"tensors_"
      "MB\":{},\"peak_memory_gib\":{:.3f},\"loss\":{:.4f}}}\n",
      flops / median / 1e9, flops / steps.front() / 1e9, flops / 1e9, times.warm_up, usage.ru_maxrss / 1024,
      backend.memory().peak >> 20, static_cast<double>(backend.memory().peak) / (1 << 30), loss);
}

void measure(Arguments a) {
  const Shape5* shape =
      std::find_if(std::begin(kShapes), std::end(kShapes), [&](const Shape5& s) { return s.name == a.config; });
  if (shape == std::end(kShapes))
    fail(Failure::usage, "CONFIG: expected tiny, mini, minilm, base or large, got \"{}\"", a.config);
  if (a.batch == 0) a.batch = a.mode == "train" ? shape->batch : 1;
  const auto backend = open(a);
  const bert::Config config{.vocab_size = a.vocabulary,
                            .hidden_size = shape->hidden,
                            .num_hidden_layers = shape->layers,
                            .num_attention_heads = shape->heads,
                            .intermediate_size = shape->intermediate};
  Work work(a, config, *backend);
  std::vector<Batch> batches;
  for (Dim n = 0; n < (a.device == "cpu" ? 1 : kBatches); ++n) batches.push_back(make_batch(a, n, *backend));

  std::uint64_t number = 0;
  Tensor last;
  /// Returns the seconds that the host took to ask for the first of them. Later ones may wait for room in the stream,
  /// which holds about a thousand launches.
  const auto steps = [&](int count) {
    const double begin = seconds_now();
    double asked = 0;
    for (int i = 0; i < count; ++i, ++number) {
      last = work.step(batches[number % batches.size()], number);
      if (i == 0) asked = seconds_now() - begin;
    }
    backend->synchronize();
    return asked;
  };
  const double begin = seconds_now();
  // A shape is captured when it comes for the third time.
  steps(std::max(a.mode == "train" ? 2 : 3 * static_cast<int>(batches.size()) + 1, a.block));
  Times times;
  times.warm_up = seconds_now() - begin;
  Profiler profiler;
  if (!a.profile.empty()) backend->profiler = &profiler;
  const double start = seconds_now();
  while (times.steps.size() < 4 || (seconds_now() - start < a.seconds && times.steps.size() < 400)) {
    const double block = seconds_now();
    times.host.push_back(steps(a.block));
    times.steps.push_back((seconds_now() - block) / a.block);
  }
  double tokens = 0;
  for (const Batch& b : batches) tokens += static_cast<double>(b.packed.tokens) / static_cast<double>(batches.size());
  print(a, *backend, std::move(times), flops_of_step(a, config, batches), tokens,
        a.mode == "train" ? ops::item(last) : 0.0);
  if (!a.profile.empty()) std::fputs(profiler.table().c_str(), stderr);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Times training steps or inferences of a random BERT.");
  Arguments a;
  app.add_option("config", a.config, "tiny, mini, minilm, base or large")->required();
  app.add_option("threads", a.threads, "cores")->required();
  app.add_option("mode", a.mode, "train or infer")->required()->check(CLI::IsMember({"train", "infer"}));
  app.add_option("batch", a.batch, "sequences a step; 0: the configuration's own");
  app.add_option("seconds", a.seconds, "how long to measure");
  app.add_option("profile", a.profile, "anything: print a table per op");
  app.add_option("--device", a.device, "cpu, cuda:N or emulated-cuda");
  app.add_option("--cpu-kernels", a.kernels, "kernel set on the cpu");
  app.add_option("--precision", a.precision, "f32, tf32, bf16 or f16")
      ->check(CLI::IsMember({"f32", "tf32", "bf16", "f16"}));
  app.add_option("--length", a.length, "most tokens of a sequence")->check(CLI::Range(4, 512));
  app.add_option("--lengths", a.lengths, "full, wikipedia or mrpc")
      ->check(CLI::IsMember({"full", "wikipedia", "mrpc"}));
  app.add_option("--head", a.head, "pretrain or classify")->check(CLI::IsMember({"pretrain", "classify"}));
  app.add_option("--vocabulary", a.vocabulary, "rows of the word embeddings")->check(CLI::Range(30522, 32768));
  app.add_option("--recompute-activations", a.recompute, "of every so many layers; 0: none")
      ->check(CLI::Range(0, 1000));
  app.add_option("--block", a.block, "steps between two looks at the clock, which wait for the device")
      ->check(CLI::Range(1, 1000));
  app.add_flag("--measured-products", a.measured,
               "on cuda: try a few algorithms for each product and take the fastest");
  CLI11_PARSE(app, argc, argv);
  try {
    measure(a);
  } catch (const Error& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return static_cast<int>(error.failure());
  }
  return 0;
}
