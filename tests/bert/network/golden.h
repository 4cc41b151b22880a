// Reads the folders of golden_model: a small model as transformers wrote it, what went in, and what PyTorch made of it.
#pragma once
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bert/directory/config_file.h"
#include "bert/network/config.h"
#include "bert/network/packed_batch.h"
#include "io/safetensors.h"
#include "nn/parameter_set.h"
#include "nn/tensor_file.h"
#include "support/paths.h"
#include "support/worst.h"
#include "tensor/backends.h"

namespace bertrand::golden {

/// One CPU backend for all tests of this program.
inline Backend& cpu() {
  static const std::unique_ptr<Backend> backend = open_cpu({.threads = 2});
  return *backend;
}

inline Tensor indices(const std::vector<std::int32_t>& values, Backend& backend = cpu()) {
  return ops::from_host(values, {static_cast<Dim>(values.size())}, backend);
}

inline std::filesystem::path path_of(const std::string& folder) {
  return std::filesystem::path(paths::shared) / "data" / "golden_model" / folder;
}

/// Whether the folder is there; says SKIPPED and why if not.
inline bool present(const std::string& folder) {
  if (std::filesystem::exists(path_of(folder) / "golden.json")) return true;
  MESSAGE("SKIPPED: " << path_of(folder).string() << " is not there");
  return false;
}

/// The greatest |a − b|; NaN if one is not a number.
inline double greatest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) worst = support::worst_of(worst, std::abs(a[i] - b[i]));
  return worst;
}

class Case {
 public:
  explicit Case(const std::string& folder)
      : directory(path_of(folder)),
        info(nlohmann::json::parse(io::read_file(directory / "golden.json"))),
        file_(directory / "golden.safetensors") {
    if (std::filesystem::exists(directory / "config.json"))
      config = bert::read_config_file(directory / "config.json", bert::UnknownKeys::keep);
  }

  std::vector<bert::Sequence> sequences() const {
    std::vector<bert::Sequence> all;
    for (std::size_t i = 0; i < info["token_ids"].size(); ++i)
      all.push_back({.token_ids = info["token_ids"][i], .token_types = info["token_types"][i], .key = i});
    return all;
  }
  bert::PackedBatch batch(Backend& backend = cpu()) const { return bert::pack(sequences(), backend); }

  std::vector<double> figures(const std::string& name) const {
    const io::SafetensorsEntry* entry = file_.find(name);
    REQUIRE_MESSAGE(entry != nullptr, "no figures for " << name);
    REQUIRE(nn::dtype_of(*entry) == DType::f64);
    std::vector<double> values(entry->bytes.size() / sizeof(double));
    std::memcpy(values.data(), entry->bytes.data(), entry->bytes.size());
    return values;
  }

  /// The greatest difference between a tensor and the figures of that name.
  double difference(const Tensor& x, const std::string& name) const {
    return greatest_difference(ops::to_host<double>(x), figures(name));
  }
  /// The same over the gradients of every parameter.
  double gradient_difference(const nn::ParameterSet& parameters) const {
    double worst = 0;
    for (const auto& segment : parameters.segments())
      worst = support::worst_of(worst, difference(parameters.gradient(segment), "grad." + segment.name));
    return worst;
  }
  /// The same over the values of the parameters, the biases of attention keys aside: their exact gradient is zero, so
  /// what an optimizer makes of it is rounding noise.
  double value_difference(const nn::ParameterSet& parameters, const std::string& prefix) const {
    double worst = 0;
    for (const auto& segment : parameters.segments())
      if (!segment.name.ends_with("self.key.bias"))
        worst = support::worst_of(worst, difference(parameters.value(segment), prefix + segment.name));
    return worst;
  }

  std::filesystem::path directory;
  nlohmann::json info;
  bert::Config config;

 private:
  io::SafetensorsFile file_;
};

}  // namespace bertrand::golden
