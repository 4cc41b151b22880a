// Sequences put end to end and uploaded.
#include "bert/network/packed_batch.h"

#include <algorithm>

#include "tensor/random.h"

namespace bertrand::bert {
namespace {

/// Up to where the next part of a batch's numbers may begin: on 256 bytes, as a tensor of its own would.
Dim with_gap(Dim count) { return (count + 63) / 64 * 64; }

}  // namespace

Sequence sequence_of(std::span<const std::int32_t> token_ids, std::int64_t first_length, std::uint64_t key) {
  Sequence sequence{.token_ids = {token_ids.begin(), token_ids.end()}, .key = key};
  sequence.token_types.assign(token_ids.size(), 1);
  std::fill_n(sequence.token_types.begin(), first_length, 0);
  return sequence;
}

PackedBatch pack(std::span<const Sequence> sequences, Backend& backend) {
  PackedBatch batch;
  for (const Sequence& s : sequences) {
    const auto length = static_cast<Dim>(s.token_ids.size());
    batch.tokens += length;
    batch.packing.longest = std::max(batch.packing.longest, length);
  }
  batch.sequences = static_cast<Dim>(sequences.size());
  const Dim all = 3 * with_gap(batch.tokens) + with_gap(batch.sequences) + with_gap(batch.sequences + 1);
  batch.numbers = Tensor({all}, DType::i32, backend);
  Dim first = 0;
  const auto next = [&](Dim count) {
    const Tensor part = batch.numbers.rows(first, first + count);
    first += with_gap(count);
    return part;
  };
  batch.token_ids = next(batch.tokens);
  batch.token_types = next(batch.tokens);
  batch.positions = next(batch.tokens);
  batch.first_rows = next(batch.sequences);
  batch.packing.offsets = next(batch.sequences + 1);
  batch.row_keys = Tensor({batch.tokens}, DType::i64, backend);
  repack(sequences, batch);
  return batch;
}

void repack(std::span<const Sequence> sequences, PackedBatch& batch) {
  std::vector<std::int32_t> numbers, types, positions, first_rows, offsets{0};  // numbers: the ids, then all others
  std::vector<std::int64_t> keys;
  std::size_t longest = 0;
  for (const Sequence& s : sequences) {
    check(!s.token_ids.empty() && s.token_ids.size() == s.token_types.size(),
          "pack: expected a sequence of one id or more, and as many types, got {} ids and {} types", s.token_ids.size(),
          s.token_types.size());
    first_rows.push_back(offsets.back());
    numbers.insert(numbers.end(), s.token_ids.begin(), s.token_ids.end());
    types.insert(types.end(), s.token_types.begin(), s.token_types.end());
    for (std::size_t p = 0; p < s.token_ids.size(); ++p) {
      positions.push_back(static_cast<std::int32_t>(p));
      keys.push_back(static_cast<std::int64_t>(mix(s.key, p)));
    }
    offsets.push_back(static_cast<std::int32_t>(numbers.size()));
    longest = std::max(longest, s.token_ids.size());
  }
  check(std::ssize(sequences) == batch.sequences && std::ssize(numbers) == batch.tokens &&
            static_cast<Dim>(longest) == batch.packing.longest,
        "repack: expected {} sequences of {} tokens, the longest of {}, got {} of {}, the longest of {}",
        batch.sequences, batch.tokens, batch.packing.longest, sequences.size(), numbers.size(), longest);
  const auto widen = [&] { numbers.resize(static_cast<std::size_t>(with_gap(std::ssize(numbers)))); };
  widen();
  for (const auto* const more : {&types, &positions, &first_rows, &offsets}) {
    numbers.insert(numbers.end(), more->begin(), more->end());
    widen();
  }
  Backend& backend = batch.numbers.backend();
  backend.upload(numbers.data(), batch.numbers);
  backend.upload(keys.data(), batch.row_keys);
  batch.offsets = std::move(offsets);
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
