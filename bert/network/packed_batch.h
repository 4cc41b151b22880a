// A batch is the concatenation of its sequences: nothing is padded, so nothing is masked out.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "bert/network/config.h"
#include "nn/layers.h"

namespace bertrand::bert {

/// One encoded input on the host: [CLS] a [SEP] (b [SEP]).
struct Sequence {
  std::vector<std::int32_t> token_ids;
  std::vector<std::int32_t> token_types;  ///< as many
  std::uint64_t key = 0;                  ///< the example's number: keys its random draws, in whatever company it is
};

/// Its first `first_length` tokens are of type 0, the others of type 1.
Sequence sequence_of(std::span<const std::int32_t> token_ids, std::int64_t first_length, std::uint64_t key = 0);

/// `tokens` rows; sequence s owns rows offsets[s] .. offsets[s + 1].
struct PackedBatch {
  // i32: one buffer. token_ids, token_types, positions, first_rows and the offsets of `packing` are parts of it, so
  // that one copy uploads them all.
  Tensor numbers;
  Tensor token_ids, token_types, positions;  // i32 [tokens]
  Tensor row_keys;                           // i64 [tokens]: names each row wherever it is computed
  Tensor first_rows;                         // i32 [sequences]: where each [CLS] lies
  nn::SelfAttention::Packing packing;        // offsets i32 [sequences + 1], and the longest length
  std::vector<std::int32_t> offsets;         // the same on the host
  Dim tokens = 0, sequences = 0;

  /// What dropout draws from in a training pass keyed by `key` (of seed and step).
  nn::Randomness randomness(std::uint64_t key) const { return {.training = true, .key = key, .row_keys = row_keys}; }
};

/// Concatenates and uploads. Throws Error(Failure::bug) on an empty sequence or unequal lengths.
PackedBatch pack(std::span<const Sequence> sequences, Backend& backend);
/// Uploads others into the same memory. Throws Error(Failure::bug) as pack(), and unless there are as many sequences
/// and tokens and the longest is as long.
void repack(std::span<const Sequence> sequences, PackedBatch& batch);

/// Throws Error(Failure::input) naming the sequence if one is longer than the model's positions, or an id or type is
/// beyond its table: what would otherwise read outside the embeddings.
void check_sequences(std::span<const Sequence> sequences, const Config& config);

}  // namespace bertrand::bert
