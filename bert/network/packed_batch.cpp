// Sequences put end to end and uploaded.
#include "bert/network/packed_batch.h"

#include <algorithm>

#include "tensor/random.h"

namespace bertrand::bert {

Sequence sequence_of(std::span<const std::int32_t> token_ids, std::int64_t first_length, std::uint64_t key) {
  Sequence sequence{.token_ids = {token_ids.begin(), token_ids.end()}, .key = key};
  sequence.token_types.assign(token_ids.size(), 1);
  std::fill_n(sequence.token_types.begin(), first_length, 0);
  return sequence;
}

PackedBatch pack(std::span<const Sequence> sequences, Backend& backend) {
  std::vector<std::int32_t> ids, types, positions, first_rows, offsets{0};
  std::vector<std::int64_t> keys;
  PackedBatch batch;
  for (const Sequence& s : sequences) {
    check(!s.token_ids.empty() && s.token_ids.size() == s.token_types.size(), "pack: a sequence of {} ids and {} types",
          s.token_ids.size(), s.token_types.size());
    first_rows.push_back(static_cast<std::int32_t>(ids.size()));
    ids.insert(ids.end(), s.token_ids.begin(), s.token_ids.end());
    types.insert(types.end(), s.token_types.begin(), s.token_types.end());
    for (std::size_t p = 0; p < s.token_ids.size(); ++p) {
      positions.push_back(static_cast<std::int32_t>(p));
      keys.push_back(static_cast<std::int64_t>(mix(s.key, p)));
    }
    offsets.push_back(static_cast<std::int32_t>(ids.size()));
    batch.packing.longest = std::max(batch.packing.longest, static_cast<Dim>(s.token_ids.size()));
  }
  batch.tokens = static_cast<Dim>(ids.size());
  batch.sequences = static_cast<Dim>(sequences.size());
  batch.token_ids = ops::from_host(ids, {batch.tokens}, backend);
  batch.token_types = ops::from_host(types, {batch.tokens}, backend);
  batch.positions = ops::from_host(positions, {batch.tokens}, backend);
  batch.row_keys = ops::from_host(keys, {batch.tokens}, backend);
  batch.first_rows = ops::from_host(first_rows, {batch.sequences}, backend);
  batch.packing.offsets = ops::from_host(offsets, {batch.sequences + 1}, backend);
  batch.offsets = std::move(offsets);
  return batch;
}

void check_sequences(std::span<const Sequence> sequences, const Config& config) {
  for (const Sequence& s : sequences) {
    const auto length = static_cast<Dim>(s.token_ids.size());
    if (length > config.max_position_embeddings)
      fail(Failure::input,
           "example {}: expected at most {} tokens (max_position_embeddings), got {}; hint: --max-seq-length {}", s.key,
           config.max_position_embeddings, length, config.max_position_embeddings);
    for (const std::int32_t id : s.token_ids)
      if (id < 0 || id >= config.vocab_size)
        fail(Failure::input,
             "example {}: token id: expected 0 to {} (vocab_size {}), got {}; hint: is it this model's vocabulary?",
             s.key, config.vocab_size - 1, config.vocab_size, id);
    for (const std::int32_t type : s.token_types)
      if (type < 0 || type >= config.type_vocab_size)
        fail(Failure::input, "example {}: token type: expected 0 to {} (type_vocab_size), got {}", s.key,
             config.type_vocab_size - 1, type);
  }
}

}  // namespace bertrand::bert
