// Parameters saved to a file and loaded from it by their names.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "io/files.h"
#include "nn/parameter_set.h"

namespace bertrand::nn {

/// A tensor somewhere on disk that a parameter can be loaded from.
struct StoredTensor {
  std::string name;   ///< as the file calls it
  std::string place;  ///< for messages: model.safetensors: tensor "a.weight"
  std::vector<std::int64_t> dims;
  std::function<void()> check;                  ///< throws Error(Failure::model) if it cannot be loaded
  std::function<void(const Tensor& out)> load;  ///< fills `out`, of this shape, converting to its type
};
/// By the name of the parameter that each is for.
using StoredTensors = std::map<std::string, StoredTensor>;

/// What came of loading: every parameter is in `loaded` or `missing`; every stored tensor that no parameter asked for
/// is in `unused`.
struct LoadReport {
  std::vector<std::string> loaded, missing, unused;
  std::vector<std::string> mis_shaped;  ///< "name: expected [..], got [..]"; such a parameter is missing too
  /// One line, and the names if they are of interest.
  std::string text() const;
};

/// What load() would report of parameters of these names and shapes. Throws as it does for another shape.
LoadReport compare(const std::vector<ParameterSet::Segment>& segments, const StoredTensors& stored,
                   const std::string& source, const std::function<bool(const std::string&)>& may_be_mis_shaped = {});

/// Fills the parameters that have a stored tensor of their name and shape. Parameters without one keep their values.
/// One of another shape that `may_be_mis_shaped` accepts (a head for other labels) counts as missing. `source` begins
/// every message. Throws Error(Failure::model) before any value changes: another shape, a type that cannot be loaded.
LoadReport load(ParameterSet& parameters, const StoredTensors& stored, const std::string& source,
                const std::function<bool(const std::string&)>& may_be_mis_shaped = {});

/// The same from one safetensors file.
LoadReport load(ParameterSet& parameters, const std::filesystem::path& file);

/// Throws Error(Failure::model) if a parameter is missing whose name `may_be_missing` does not accept.
void require(const LoadReport& report, const std::filesystem::path& source,
             const std::function<bool(const std::string&)>& may_be_missing);

/// Writes all parameters (of a half type their f32 masters) to a safetensors file and makes it durable. Returns the
/// CRC-32C of each tensor. Throws Error(Failure::io).
std::map<std::string, std::uint32_t> save(const ParameterSet& parameters, io::Files& files,
                                          const std::filesystem::path& file);
std::map<std::string, std::uint32_t> save(const ParameterSet& parameters, const std::filesystem::path& file);

/// "a, b, c and 4 more"
std::string joined(const std::vector<std::string>& names, std::size_t most = 6);

}  // namespace bertrand::nn
