// A network run forward on batches. A GPU computes one sequence faster than the host asks for its kernels one by one,
// so the work of small batches whose sizes come again is captured (tensor/backend.h).
#pragma once
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <span>

#include "bert/network/packed_batch.h"

namespace bertrand::inference {

/// For one thread at a time. Backend and network must outlive it.
class Forward {
 public:
  /// Outputs [n, width] of a batch. `rows`, i32, are those that the network is to read; empty if none were given. What
  /// it asks of the device may depend on nothing but the shapes of these and the longest length; so not on the batch's
  /// offsets on the host.
  using Network = std::function<Variable(const bert::PackedBatch& batch, const Tensor& rows)>;
  Forward(Backend& backend, Network network) : backend_(backend), network_(std::move(network)) {}

  /// The outputs, which are good until the next call, with the same bits whether they were captured or not. Throws what
  /// the network throws.
  Tensor operator()(std::span<const bert::Sequence> sequences, std::span<const std::int32_t> rows = {});

 private:
  /// What decides the sizes of all tensors and the grids of all kernels.
  struct Size {
    Dim sequences = 0, tokens = 0, longest = 0, rows = 0;
    bool operator==(const Size&) const = default;
  };
  /// Work, and what it reads and writes.
  struct Captured {
    bert::PackedBatch batch;
    Tensor rows, outputs;
    std::unique_ptr<CapturedWork> work;
  };
  struct Known {
    Size size;
    int uses = 0;  ///< those that were not captured
    bool refused = false;
    Shape outputs_shape;  ///< as it was each time
    std::optional<Captured> captured;
  };
  Tensor run_plainly(std::span<const bert::Sequence> sequences, std::span<const std::int32_t> rows);
  Known& known(const Size& size);
  std::optional<Captured> capture(const Shape& outputs_shape, std::span<const bert::Sequence> sequences,
                                  std::span<const std::int32_t> rows);
  Tensor upload(std::span<const std::int32_t> rows);

  Backend& backend_;
  const Network network_;
  std::list<Known> known_;  ///< the one that was used last comes first
};

}  // namespace bertrand::inference
