// Names, paths and random draws of modules.
#include "nn/module.h"

#include <cmath>

#include "tensor/random.h"

namespace bertrand::nn {

Parameter::Parameter(const Scope& scope, const Initial& initial) : Parameter(*scope.parent, {scope.name}, initial) {}

Parameter::Parameter(Module& parent, std::vector<std::string> part_names, const Initial& initial)
    : initial_(initial), part_names_(std::move(part_names)) {
  check(!part_names_.empty() && initial_.shape.rank() > 0 &&
            initial_.shape[0] % static_cast<Dim>(part_names_.size()) == 0,
        "parameter {}{}: expected a first axis that {} names can share in equal parts, got {}", parent.path(),
        part_names_.empty() ? "" : part_names_.front(), part_names_.size(), initial_.shape);
  parent.parameters_.emplace_back(parent.path(), this);
}

void Parameter::place(const Tensor& value, const Tensor& gradient) {
  value_ = value;
  slot_ = {};
  if (!gradient) return;
  slot_ = std::make_shared<GradientSlot>(value);
  slot_->buffer = gradient;
}

Module::Module(const Scope& scope) {
  if (!scope.parent) return;
  path_ = scope.parent->path_ + scope.name + ".";
  scope.parent->children_.push_back(this);
}

std::vector<std::pair<std::string, Parameter*>> Module::parameters() const {
  auto all = parameters_;
  for (const Module* child : children_) {
    auto below = child->parameters();
    all.insert(all.end(), below.begin(), below.end());
  }
  return all;
}

std::uint64_t Module::site() const { return hash_name(path_); }

Dropout Randomness::dropout(double probability, std::uint64_t site) const {
  if (!training) return {};
  return {.threshold = static_cast<std::uint32_t>(std::lround(probability * 65536)),
          .key = mix(key, site),
          .row_keys = row_keys};
}

Randomness Randomness::rows(const Tensor& indices) const {
  return training ? Randomness{training, key, ops::gather(row_keys, indices)} : *this;
}

}  // namespace bertrand::nn
