// A Module declares parameters: shapes, initial values and names. A ParameterSet gives them memory.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "autograd/ops.h"
#include "nn/init.h"

namespace bertrand::nn {

class Module;

/// The place of a module or parameter in the tree: its parent and its name there.
struct Scope {
  Module* parent = nullptr;
  std::string name = {};
};

/// A named variable that is trained. Declared with its shape and initial values; it has no memory until a ParameterSet
/// gives it some. Several names may share one tensor, stacked along the first axis in equal parts (query, key, value).
class Parameter : public Variable {
 public:
  Parameter(const Scope& scope, const Initial& initial);
  Parameter(Module& parent, std::vector<std::string> part_names, const Initial& initial);
  Parameter(const Parameter&) = delete;
  Parameter& operator=(const Parameter&) = delete;

  const Initial& initial() const { return initial_; }  ///< shape of the whole tensor
  const std::vector<std::string>& part_names() const { return part_names_; }

  /// Called by ParameterSet: views of its flat tensors. `gradient` may be empty: then no gradient is wanted.
  void place(const Tensor& value, const Tensor& gradient);

 private:
  Initial initial_;
  std::vector<std::string> part_names_;
};

class Module {
 public:
  explicit Module(const Scope& scope = {});
  Module(const Module&) = delete;  // a replica is built from a config
  Module& operator=(const Module&) = delete;
  virtual ~Module() = default;

  /// Every parameter below here with the dotted path of the module that holds it ("bert.encoder.layer.0."):
  /// the module's own in the order of declaration, then those of its modules in theirs.
  std::vector<std::pair<std::string, Parameter*>> parameters() const;
  /// This module's dotted name from the root.
  const std::string& path() const { return path_; }
  /// A hash of path(), the same in every run: the key of this module's random draws.
  std::uint64_t site() const;

 protected:
  Scope in(std::string name) { return {this, std::move(name)}; }

 private:
  friend class Parameter;
  std::string path_;  // "" for the root, else ends with a dot
  std::vector<std::pair<std::string, Parameter*>> parameters_;
  std::vector<Module*> children_;
};

/// What one forward pass draws from. Default: nothing is random (evaluation).
struct Randomness {
  bool training = false;
  std::uint64_t key = 0;  ///< made of seed and step
  Tensor row_keys = {};   ///< i64 [rows of the tensors that pass through]

  /// The dropout of `probability` at `site`; off if nothing is random or the probability is 0.
  Dropout dropout(double probability, std::uint64_t site) const;
  /// The same randomness for a selection of rows.
  Randomness rows(const Tensor& indices) const;
};

}  // namespace bertrand::nn
