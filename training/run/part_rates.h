// How each part of a model is trained: not at all, or at a share of the learning rate (--freeze, --layer-decay).
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "nn/module.h"
#include "nn/parts.h"

namespace bertrand::training {

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
  PartRates(std::vector<nn::Part> parts, const Options& options);

  /// 0 for a frozen parameter, 1 for the head.
  double of(std::string_view parameter) const;
  /// The elements of the parameters that are trained.
  Dim trained(const nn::Module& model) const;
  /// Lines of a plan: what is frozen, and the share of each part. Empty if all are trained alike.
  std::string text(const nn::Module& model) const;

 private:
  void freeze(std::string_view names);
  /// The place of the part of this name; throws, quoting `item`.
  std::size_t find(std::string_view name, std::string_view item) const;

  std::vector<nn::Part> parts_;
  std::vector<double> rates_;  // one for each part
};

}  // namespace bertrand::training
