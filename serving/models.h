// The models that are served: opened, found by name, replaced by newer versions.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bert/inference/open.h"
#include "distributed/replica_group.h"
#include "training/run/settings.h"

namespace bertrand::serving {

/// What to open a model with.
struct ModelOptions {
  bert::TokenizerFlags tokenizer;
  std::optional<inference::Head> head;  ///< none: as config.json says
  inference::Options inference;
  training::Settings machine;  ///< device, precision, threads and kernels
};

/// Which model.
struct ModelPlace {
  std::string name;
  std::filesystem::path directory;
  std::int64_t version = 1;
};

/// A model with a device of its own, so that one may be opened or go away while another one computes.
class ServedModel {
 public:
  /// Loads it and runs a first batch, so that the first request finds it warm. Throws Error as inference::open() does,
  /// and Error(Failure::numerics) if an output is not finite.
  ServedModel(const ModelPlace& place, const ModelOptions& options);

  const std::string& name() const { return place_.name; }
  std::int64_t version() const { return place_.version; }
  inference::Head head() const { return head_; }
  const bert::Config& config() const { return config_; }
  std::vector<std::string> labels() const;
  tasks::Kind kind_of_classifier() const;
  /// What dialects call the numbers of a classifier: "probabilities", and of a regression "logits".
  const char* scores_name() const;
  int max_length() const { return options_.max_seq_length; }  ///< tokens that are read at once
  std::string precision() const;
  std::string pooling() const;  ///< of embeddings
  /// What a batch of `tokens` takes besides the weights, reckoned from a small one.
  std::size_t batch_bytes(std::int64_t tokens) const;
  const inference::Predictor& predictor() const { return *predictor_; }
  /// The most bytes that the answer to a query takes, with the query. An estimate from above.
  std::size_t bytes_of(const inference::Query& query) const;

 private:
  void warm_up(Backend& backend);

  const ModelPlace place_;
  const bert::Config config_;
  const inference::Head head_;
  const inference::Options options_;  ///< completed
  const DType dtype_;
  distributed::ReplicaGroup device_;
  std::size_t bytes_of_batch_ = 0, bytes_of_token_ = 0;  // of a batch: a constant part, and for each token
  std::unique_ptr<inference::Predictor> predictor_;
};

using ModelPointer = std::shared_ptr<const ServedModel>;

/// For one thread.
class Models {
 public:
  /// In the place of the one of the same name, or after all others.
  void put(ModelPointer model);
  const std::vector<ModelPointer>& all() const { return models_; }
  /// The one of this name; null if there is none.
  ModelPointer find(std::string_view name) const;
  /// The first one with this head, which requests without a name mean; null if there is none.
  ModelPointer first(inference::Head head) const;

 private:
  std::vector<ModelPointer> models_;
};

/// The directories in `base` whose names are numbers, the largest first.
std::vector<ModelPlace> versions_in(const std::filesystem::path& base, const std::string& name);

/// The files of a directory with their sizes and times: another text as soon as one of them is written.
std::string state_of(const std::filesystem::path& directory);

}  // namespace bertrand::serving
