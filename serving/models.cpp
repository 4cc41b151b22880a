// Models opened, found and replaced.
#include "serving/models.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "bert/directory/model_directory.h"
#include "io/error.h"
#include "io/numbers.h"
#include "io/signals.h"
#include "training/run/devices.h"

namespace bertrand::serving {
namespace {

using inference::Head;

distributed::ReplicaGroup open_device(const training::Settings& machine) {
  if (training::replicas_of_process(machine) != 1)
    fail(Failure::usage, "--device: expected one device, got {}", machine.device);
  return training::open_replicas(machine, nullptr);
}

/// The configuration of a model, with the labels of a classifier.
bert::Config config_of(const std::filesystem::path& directory) {
  bert::Config config = bert::read_config(directory);
  config.labels = bert::labels_of(config, directory);
  return config;
}

/// The pairs of positions among which more candidates than usual are looked for; what tokens take has room for fewer.
std::size_t pairs_of(const inference::Query& query, const inference::Options& options) {
  if (options.top_k <= options.answers.n_best_size) return 0;
  std::size_t pairs = 0;
  for (const bert::Sequence& window : query.sequences) {
    const std::size_t starts = std::min(window.token_ids.size(), static_cast<std::size_t>(options.top_k));
    pairs += starts * std::min(starts, static_cast<std::size_t>(options.answers.max_answer_length));
  }
  return pairs;
}

}  // namespace

ServedModel::ServedModel(const ModelPlace& place, const ModelOptions& options)
    : place_(place),
      config_(config_of(place.directory)),
      head_(options.head ? *options.head : inference::head_of(config_, place.directory)),
      options_(inference::completed(options.inference, config_, head_, place.directory)),
      dtype_(options.machine.precision),
      device_(open_device(options.machine)) {
  io::leave_if_requested("loading " + place.name);
  device_.run([&](const distributed::Replica& self) {
    predictor_ = inference::open(
        {.directory = place.directory, .tokenizer = options.tokenizer, .backend = self.backend(), .dtype = dtype_},
        head_, options.inference);
    warm_up(self.backend());
  });
}

/// With the ids that cost most: each [MASK] makes a row of the vocabulary. A second, larger batch tells what each token
/// takes. A model whose weights are damaged ends here, before it takes the place of one that answers.
void ServedModel::warm_up(Backend& backend) {
  std::int32_t id = 0;
  while (head_ == Head::fill_mask && predictor_->token(id) != "[MASK]") ++id;
  const std::size_t weights = backend.memory().in_use;
  const auto bytes_of_batch = [&](std::size_t size) {
    const auto outputs = predictor_->run(std::vector<bert::Sequence>{
        {.token_ids = std::vector(size, id), .token_types = std::vector<std::int32_t>(size, 0)}});
    for (const float value : outputs[0].values)
      if (!std::isfinite(value))
        fail(Failure::numerics,
             "{}: version {}: outputs: expected finite numbers, got {}; hint: --precision f32, or damaged weights",
             name(), version(), value);
    return backend.memory().peak - weights + 2 * outputs[0].values.size() * sizeof(float);
  };
  const auto size = static_cast<std::size_t>(std::min(64, max_length())) / 2;
  const std::size_t half = bytes_of_batch(size), whole = bytes_of_batch(2 * size);
  bytes_of_token_ = (whole - std::min(half, whole)) / size;
  bytes_of_batch_ = whole - std::min(whole, 2 * size * bytes_of_token_);
}

std::size_t ServedModel::batch_bytes(std::int64_t tokens) const {
  const std::size_t bytes = bytes_of_batch_ + bytes_of_token_ * static_cast<std::size_t>(tokens);
  return bytes + bytes / 16;  // the allocator keeps so much more, and a token takes less than a byte more
}

std::string ServedModel::pooling() const { return io::name_in(inference::poolings(), options_.pooling); }

std::vector<std::string> ServedModel::labels() const { return config_.labels; }

tasks::Kind ServedModel::kind_of_classifier() const {
  return inference::kind_of_classifier(config_, labels().size(), place_.directory);
}

const char* ServedModel::scores_name() const {
  return kind_of_classifier() == tasks::Kind::regression ? "logits" : "probabilities";
}

std::string ServedModel::precision() const { return std::string(name_of(dtype_)); }

std::size_t ServedModel::bytes_of(const inference::Query& query) const {
  constexpr std::size_t kNumber = 32;   // in JSON's memory and as text
  constexpr std::size_t kObject = 300;  // of a few keys with a word and numbers, twice
  constexpr std::size_t kPair = 96;     // 32 bytes, in an array that grows and is then sorted
  std::size_t tokens = query.padding;
  for (const bert::Sequence& sequence : query.sequences) tokens += sequence.token_ids.size();
  const std::size_t labels = this->labels().size();
  std::size_t answer = kObject;
  switch (head_) {
    case Head::classify: answer += labels * kObject; break;
    case Head::choose: answer += query.sequences.size() * kNumber; break;
    case Head::tokens: answer += query.words * inference::kWordBytes + tokens * labels * kNumber; break;
    case Head::answer:
      answer += tokens * 2 * kNumber + static_cast<std::size_t>(options_.top_k) * 2 * kObject;
      answer += pairs_of(query, options_) * kPair;
      break;
    case Head::fill_mask: answer += tokens * static_cast<std::size_t>(options_.top_k) * kObject; break;
    case Head::embed: answer += static_cast<std::size_t>(config_.hidden_size) * kNumber; break;
  }
  return answer + tokens * 2 * sizeof(std::int32_t);
}

void Models::put(ModelPointer model) {
  const auto old = std::ranges::find(models_, model->name(), &ServedModel::name);
  if (old == models_.end()) models_.push_back(std::move(model));
  else *old = std::move(model);
}

ModelPointer Models::find(std::string_view name) const {
  const auto found = std::ranges::find(models_, name, &ServedModel::name);
  return found == models_.end() ? nullptr : *found;
}

ModelPointer Models::first(Head head) const {
  const auto found = std::ranges::find(models_, head, &ServedModel::head);
  return found == models_.end() ? nullptr : *found;
}

std::vector<ModelPlace> versions_in(const std::filesystem::path& base, const std::string& name) {
  std::vector<ModelPlace> places;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(base, ignored))
    if (const auto version = io::whole_number(entry.path().filename().string()); version && entry.is_directory(ignored))
      places.push_back({.name = name, .directory = entry.path(), .version = *version});
  std::ranges::sort(places, std::greater{}, &ModelPlace::version);
  return places;
}

std::string state_of(const std::filesystem::path& directory) {
  std::string state;
  std::error_code ignored;
  for (std::filesystem::recursive_directory_iterator each(directory, ignored), end; each != end;
       each.increment(ignored))
    state += fmt::format("{} {} {}\n", each->path().string(), each->file_size(ignored),
                         each->last_write_time(ignored).time_since_epoch().count());
  return state;
}

}  // namespace bertrand::serving
