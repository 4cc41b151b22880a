// The sum of a step's gradients over all its micro-batches and all replicas, in the tree of pairwise_tree.h.
//
// A replica computes its micro-batches one after the other, each into the same flat gradients. GradientSum adds up what
// it can of them in a binary counter of buffers. The last micro-batch stays where it is computed. Its backward finishes
// parameters roughly from the last to the first, so buckets are cut from the end of the flat gradients: the sum of a
// bucket over all replicas starts as soon as its gradients are final, while backward computes the others. All replicas
// cut at the same places, also those that have no micro-batch.
//
// A gradient has the type of the model. A sum of several is f32 for the half types: with their 8 or 11 digits small
// gradients would vanish beside the sum. With one micro-batch there is no buffer and no pass over memory.
#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "distributed/collective.h"

namespace bertrand::distributed {

class GradientSum {
 public:
  /// Elements of a bucket (25 MB of f32): so many that the start of its sum costs nothing beside the sum.
  static constexpr Dim kBucket = Dim{6} << 20;

  explicit GradientSum(Collective& collective, Dim bucket = kBucket) : collective_(collective), bucket_(bucket) {}

  /// Begins a step of `micro_batches`, of which this replica computes `mine`, each into `gradients` (flat).
  void begin(const Tensor& gradients, const Share& mine, std::int64_t micro_batches);
  /// A window of the gradients is final for the micro-batch that is being computed. This only makes sums start early;
  /// a tensor of other memory is ignored.
  void ready(const Tensor& window);
  /// All gradients of the micro-batch are final. They may be overwritten, unless it was the last one of this replica.
  void add();
  /// Returns the sum, when it is there: the gradients themselves, or memory of the type of sums.
  Tensor finish();

  /// The most buffers that a replica needs at a time for the micro-batches `mine`. Half types need one more if the step
  /// has several.
  static int buffers(const Share& mine, std::int64_t micro_batches);
  /// As many as any of `replicas` needs, or one more, in any step of up to so many micro-batches. One of fewer, as the
  /// last of an epoch may be, can need more than a full one, because its tree is cut at other places.
  static int most_buffers(std::int64_t micro_batches, int replicas);

 private:
  bool computes_last() const { return next_ + 1 == mine_.end(); }
  /// A buffer that nothing else uses.
  Tensor free_buffer();
  /// Where a sum may go: the gradients, or a buffer if their type is not the type of sums.
  Tensor place_of_sum();
  /// Before the last micro-batch: decides where the sum over all replicas goes.
  void begin_buckets();
  /// Starts the sum of [begin, unsent_), the next bucket.
  void start(Dim begin);

  Collective& collective_;
  const Dim bucket_;
  Tensor gradients_;
  Share mine_;
  std::int64_t micro_batches_ = 0;
  std::int64_t next_ = 0;             // the micro-batch that is computed next
  std::vector<Addend> nodes_;         // of the tree: what this replica has added up, in order
  std::vector<Tensor> buffers_;       // for nodes; they are used again in later steps
  Tensor sum_;                        // over all replicas
  Dim unsent_ = 0;                    // sums of the elements from here to the end have started
  Dim final_from_ = 0;                // the elements from here to the end are final
  std::map<Dim, Dim> final_windows_;  // before those: end → begin
};

}  // namespace bertrand::distributed
