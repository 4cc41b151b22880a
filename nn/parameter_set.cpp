#include "nn/parameter_set.h"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>

#include "tensor/backends.h"
#include "tensor/ops.h"
#include "tensor/random.h"

namespace bertrand::nn {
namespace {

constexpr Dim kChunk = Dim{1} << 20;  // elements drawn at a time: a whole embedding table would need its size again
constexpr Dim kBlock = Dim{1} << 14;  // elements of one key, so that several threads may draw

/// Draws in blocks, each keyed by its place: the values do not depend on who draws which.
void draw(const Initial& initial, std::uint64_t key, Dim first, std::vector<float>& values) {
  const auto count = static_cast<Dim>(values.size());
  if (initial.kind == Initial::Kind::constant) {
    std::fill(values.begin(), values.end(), static_cast<float>(initial.value));
    return;
  }
  std::atomic<Dim> next{0};
  const auto work = [&] {
    for (Dim begin = next.fetch_add(kBlock); begin < count; begin = next.fetch_add(kBlock)) {
      Random random(mix(key, static_cast<std::uint64_t>((first + begin) / kBlock)));
      for (Dim i = begin; i < std::min(count, begin + kBlock); ++i)
        values[static_cast<std::size_t>(i)] = static_cast<float>(random.truncated_normal(initial.value));
    }
  };
  std::vector<std::jthread> others;
  try {
    // How many draw is for speed alone.
    if (count > 8 * kBlock) others.resize(static_cast<std::size_t>(std::min(8, available_cores()) - 1));
    for (std::jthread& other : others) other = std::jthread(work);
  } catch (const std::system_error&) {  // no more threads can be had: fewer do the same
  }
  work();
}

/// The next place where a parameter may begin.
Dim aligned(Dim place) { return (place + kVectorElements - 1) / kVectorElements * kVectorElements; }

/// That of each of its names.
Shape shape_of_part(const Parameter& parameter) {
  const Shape& whole = parameter.initial().shape;
  return whole.with(0, whole[0] / static_cast<Dim>(parameter.part_names().size()));
}

}  // namespace

std::vector<ParameterSet::Segment> ParameterSet::segments_of(const Module& model) {
  std::vector<Segment> segments;
  for (const auto& [path, parameter] : model.parameters())
    for (const std::string& name : parameter->part_names())
      segments.push_back({path + name, shape_of_part(*parameter)});
  return segments;
}

ParameterSet::ParameterSet(Module& model, Backend& backend, const Options& options) {
  const std::vector<Dim> begins = lay_out(model, options);
  const Dim total = aligned(segments_.empty() ? 0 : segments_.back().begin + segments_.back().count());
  values_ = ops::full({total}, 0, options.dtype, backend);
  if (options.gradients) gradients_ = ops::full({trained_end_}, 0, options.dtype, backend);
  const DType wide = compute_type(options.dtype);
  masters_ = wide == options.dtype ? values_ : ops::full({total}, 0, wide, backend);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Shape& shape = parameters_[i]->initial().shape;
    const bool wanted = gradients_ && begins[i] < trained_end_;
    parameters_[i]->place(values_.window(begins[i], shape), wanted ? gradients_.window(begins[i], shape) : Tensor{});
  }
  if (options.initialize)
    for (std::size_t i = 0; i < segments_.size(); ++i) initialize(i, options.seed);
}

std::vector<Dim> ParameterSet::lay_out(const Module& model, const Options& options) {
  auto all = model.parameters();
  const auto rate = [&](const auto& path, const Parameter& parameter) {
    return options.rate ? options.rate(path + parameter.part_names().front()) : 1.0;
  };
  const auto frozen = std::stable_partition(all.begin(), all.end(),
                                            [&](const auto& each) { return rate(each.first, *each.second) != 0; });
  Dim total = 0;
  std::vector<Dim> begins;
  for (auto each = all.begin(); each != all.end(); ++each) {
    const auto& [path, parameter] = *each;
    const Initial& initial = parameter->initial();
    total = aligned(total);
    begins.push_back(total);
    parameters_.push_back(parameter);
    const Shape shape = shape_of_part(*parameter);
    for (const std::string& name : parameter->part_names()) {
      segments_.push_back({path + name, shape, total, rate(path, *parameter)});
      initials_.push_back(&initial);
      total += shape.elements();
    }
    if (each >= frozen) continue;
    trained_end_ = aligned(total);
  }
  return begins;
}

const ParameterSet::Segment* ParameterSet::find(std::string_view name) const {
  for (const Segment& segment : segments_)
    if (segment.name == name) return &segment;
  return nullptr;
}

void ParameterSet::initialize(std::size_t index, std::uint64_t seed) {
  const Segment& segment = segments_[index];
  const Initial& initial = *initials_[index];
  const std::uint64_t key = mix(seed, hash_name(segment.name));
  for (Dim first = 0; first < segment.count(); first += kChunk) {
    const Shape part{std::min(kChunk, segment.count() - first)};
    std::vector<float> values(static_cast<std::size_t>(part[0]));
    draw(initial, key, first, values);
    const Tensor drawn = ops::from_host(values, part, backend());
    ops::copy_into(drawn, masters_.window(segment.begin + first, part));
    if (!masters_.same_memory(values_)) ops::copy_into(drawn, values_.window(segment.begin + first, part));
  }
}

void ParameterSet::zero_gradients() {
  for (Parameter* parameter : parameters_) parameter->zero_grad();
}

const Tensor& ParameterSet::gradients() const {
  check(static_cast<bool>(gradients_),
        "parameters: expected gradients, got a set that was made without; hint: ParameterSet::Options::gradients");
  complete_gradients();
  return gradients_;
}

void ParameterSet::complete_gradients() const {
  for (Parameter* parameter : parameters_)
    if (parameter->requires_grad() && !parameter->grad()) {
      ops::fill(parameter->slot()->buffer, 0);
      parameter->slot()->written = true;
    }
}

void ParameterSet::round_masters() {
  if (!masters_.same_memory(values_)) ops::copy_into(masters_, values_);
}

std::string ParameterSet::first_non_finite(const Tensor& flat) const {
  const Dim at = ops::first_non_finite(flat);
  if (at < 0) return {};
  const auto after = std::find_if(segments_.begin(), segments_.end(), [at](const Segment& s) { return s.begin > at; });
  return std::prev(after)->name;
}

}  // namespace bertrand::nn
