#include "bert/network/packed_batch.h"

#include <doctest/doctest.h>

#include "support/refusal.h"
#include "tensor/backends.h"
#include "tensor/ops.h"

using namespace bertrand;
using namespace bertrand::bert;

namespace {

const Config kConfig{.vocab_size = 10, .max_position_embeddings = 3, .type_vocab_size = 2};

std::string refusal(const Sequence& sequence) {
  return support::refusal(Failure::input, [&] {
    check_sequences(std::vector<Sequence>{{.token_ids = {1, 2}, .token_types = {0, 0}}, sequence}, kConfig);
  });
}

}  // namespace

TEST_CASE("what would read outside the embeddings is refused with the number of its example") {
  CHECK(refusal({.token_ids = {0, 9, 5}, .token_types = {0, 1, 1}, .key = 8}) == "");
  CHECK(refusal({.token_ids = {1, 2, 3, 4}, .token_types = {0, 0, 0, 0}, .key = 8}) ==
        "example 8: expected at most 3 tokens (max_position_embeddings), got 4; hint: --max-seq-length 3");
  CHECK(refusal({.token_ids = {1, 10}, .token_types = {0, 0}, .key = 8}) ==
        "example 8: token id: expected 0 to 9 (vocab_size 10), got 10; hint: is it this model's vocabulary?");
  CHECK(refusal({.token_ids = {-1}, .token_types = {0}, .key = 8}).starts_with("example 8: token id: expected 0 to 9"));
  CHECK(refusal({.token_ids = {1, 1}, .token_types = {0, 2}, .key = 8}) ==
        "example 8: token type: expected 0 to 1 (type_vocab_size), got 2");
  CHECK(
      refusal({.token_ids = {1}, .token_types = {-1}, .key = 8}).starts_with("example 8: token type: expected 0 to 1"));
}

TEST_CASE("sequences are laid end to end, each with positions from 0") {
  const auto backend = open_cpu({.threads = 1});
  const PackedBatch batch = pack(std::vector<Sequence>{{.token_ids = {7, 8, 9}, .token_types = {0, 0, 1}, .key = 4},
                                                       {.token_ids = {5}, .token_types = {0}, .key = 2}},
                                 *backend);
  using Ids = std::vector<std::int32_t>;
  CHECK(ops::to_host<std::int32_t>(batch.token_ids) == Ids{7, 8, 9, 5});
  CHECK(ops::to_host<std::int32_t>(batch.token_types) == Ids{0, 0, 1, 0});
  CHECK(ops::to_host<std::int32_t>(batch.positions) == Ids{0, 1, 2, 0});
  CHECK(batch.offsets == Ids{0, 3, 4});
  const auto keys = ops::to_host<std::int64_t>(batch.row_keys);
  CHECK(keys.size() == 4);
  CHECK(keys[1] != keys[0]);
  CHECK(keys[3] != keys[0]);  // the first token of another example
}
