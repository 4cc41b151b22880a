// Which batches are captured, and when their captures go.
#include "bert/inference/forward.h"

#include <algorithm>

namespace bertrand::inference {
namespace {

// For more tokens a GPU takes longer than the host, which then has nothing to gain.
constexpr Dim kMostTokens = 1024;
// A capture costs some three runs, and what the driver keeps of it. So a shape must have come a few times among the
// last ones, or texts of ever new lengths would be captured in vain.
constexpr int kPlainUses = 2;
constexpr std::size_t kMostKnown = 64;
constexpr std::size_t kMostOutputs = std::size_t{4} << 20;  // bytes: all captures keep at most 256 MiB of them

}  // namespace

Tensor Forward::operator()(std::span<const bert::Sequence> sequences, std::span<const std::int32_t> rows) {
  const NoGrad no_graph;
  Size size{.sequences = std::ssize(sequences), .rows = std::ssize(rows)};
  for (const bert::Sequence& sequence : sequences) {
    size.tokens += std::ssize(sequence.token_ids);
    size.longest = std::max(size.longest, static_cast<Dim>(std::ssize(sequence.token_ids)));
  }
  // A profiler wants every op by itself.
  if (size.tokens > kMostTokens || backend_.profiler) return run_plainly(sequences, rows);
  Known& known = this->known(size);
  if (known.uses >= kPlainUses && !known.captured && !known.refused) {
    known.refused = true;  // unless it succeeds
    known.captured = capture(known.outputs_shape, sequences, rows);
  }
  if (!known.captured) {
    const Tensor outputs = run_plainly(sequences, rows);
    Known& plain = this->known(size);  // again: that run may have dropped it
    ++plain.uses;
    plain.outputs_shape = outputs.shape();
    return outputs;
  }
  try {
    Captured& captured = *known.captured;
    bert::repack(sequences, captured.batch);
    if (captured.rows) backend_.upload(rows.data(), captured.rows);
    captured.work->run();
    return captured.outputs;
  } catch (const Error& error) {
    if (error.failure() != Failure::memory) throw;
  }
  known.captured.reset();  // the driver may need memory of its own for a graph
  return run_plainly(sequences, rows);
}

/// What captured work keeps must not be why a batch finds no memory.
Tensor Forward::run_plainly(std::span<const bert::Sequence> sequences, std::span<const std::int32_t> rows) {
  const auto run = [&] { return network_(bert::pack(sequences, backend_), upload(rows)).value(); };
  try {
    return run();
  } catch (const Error& error) {
    const bool keeps = std::ranges::any_of(known_, [](const Known& one) { return one.captured.has_value(); });
    if (error.failure() != Failure::memory || !keeps) throw;
  }
  known_.clear();
  return run();
}

Forward::Known& Forward::known(const Size& size) {
  const auto found = std::ranges::find(known_, size, &Known::size);
  if (found != known_.end()) {
    known_.splice(known_.begin(), known_, found);
  } else {
    if (known_.size() == kMostKnown) known_.pop_back();
    known_.emplace_front().size = size;
  }
  return known_.front();
}

/// None if the device gains nothing or cannot capture it: a batch can do without.
std::optional<Forward::Captured> Forward::capture(const Shape& outputs_shape, std::span<const bert::Sequence> sequences,
                                                  std::span<const std::int32_t> rows) {
  if (static_cast<std::size_t>(outputs_shape.elements()) * sizeof(float) > kMostOutputs) return {};
  try {
    Captured made{bert::pack(sequences, backend_), upload(rows), Tensor(outputs_shape, DType::f32, backend_), nullptr};
    made.work = backend_.capture([&] { ops::copy_into(network_(made.batch, made.rows).value(), made.outputs); });
    if (made.work) return made;
  } catch (const Error& error) {
    if (error.failure() == Failure::bug) throw;
  }
  return {};
}

Tensor Forward::upload(std::span<const std::int32_t> rows) {
  return rows.empty() ? Tensor() : ops::from_host(rows, {std::ssize(rows)}, backend_);
}

}  // namespace bertrand::inference
