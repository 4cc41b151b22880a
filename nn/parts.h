// The parts of a model, and how each is trained: not at all, or at a share of the learning rate.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "nn/module.h"

namespace bertrand::nn {

/// A part of a model that has a name for people. Parameters of no part are the head.
struct Part {
  std::string name;      ///< embeddings, 0, 1, …
  std::string prefix;    ///< begins the names of its parameters
  int below = 0;         ///< how many steps it is below the head: 1 for the last layer, 0 for what lies beside the head
  bool is_idle = false;  ///< no loss depends on it: it is frozen, so that decay leaves it as it is
};

/// The share of the learning rate that each parameter gets.
class PartRates {
 public:
  struct Options {
    std::string freeze = {};  ///< parts and ranges of parts, separated by commas: embeddings,0-3
    /// d of layer-wise decay: a part gets the rate times d^below. Sun et al. 2019 ("How to Fine-Tune BERT for Text
    /// Classification", section 5.3.4) and Clark et al. 2020 (google-research/electra, optimization.py, where the last
    /// layer gets d² because the head counts two steps).
    double decay = 1;
  };
  /// `parts` from the input to the head. Throws Error(Failure::usage), which lists the parts, if `freeze` names
  /// another.
  PartRates(std::vector<Part> parts, const Options& options);

  /// 0 for a frozen parameter, 1 for the head.
  double of(std::string_view parameter) const;
  /// The elements of the parameters that are trained.
  Dim trained(const Module& model) const;
  /// Lines of a plan: what is frozen, and the share of each part. Empty if all are trained alike.
  std::string text(const Module& model) const;

 private:
  void freeze(std::string_view names);
  /// The place of the part of this name; throws, quoting `item`.
  std::size_t find(std::string_view name, std::string_view item) const;

  std::vector<Part> parts_;
  std::vector<double> rates_;  // one for each part
};

}  // namespace bertrand::nn
