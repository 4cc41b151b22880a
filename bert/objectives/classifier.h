// Runs a sequence classifier over encoded examples: their losses in training, their outputs otherwise.
#pragma once
#include <span>
#include <vector>

#include "bert/network/heads.h"
#include "bert/tasks/encode.h"
#include "bert/tasks/metrics.h"

namespace bertrand::distributed {
class Replica;
}

namespace bertrand::objectives {

/// Packs the examples of these numbers; their numbers key their random draws.
bert::PackedBatch pack_examples(const tasks::EncodedDataset& data, std::span<const std::int64_t> numbers,
                                Backend& backend);

/// The loss of `logits` [examples, outputs] against the targets of these examples, a sum divided by what the whole step
/// has: examples, or examples times labels.
Variable task_loss(tasks::Kind kind, const Variable& logits, const tasks::Dataset& dataset,
                   std::span<const std::int64_t> numbers, std::int64_t examples_of_step);

/// The outputs for every example, in order, nothing dropped out: all of them on every replica, each of which computes
/// its share, `batch_size` examples at a time. What an example gets does not depend on the batches.
tasks::Logits predict(const bert::ForSequenceClassification& model, const tasks::EncodedDataset& data,
                      std::int64_t batch_size, const distributed::Replica& self);

}  // namespace bertrand::objectives
