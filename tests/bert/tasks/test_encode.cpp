#include <doctest/doctest.h>

#include "bert/tasks/encode.h"
#include "tensor/error.h"

using namespace bertrand;
using namespace bertrand::tasks;

namespace {

using Ids = std::vector<std::int32_t>;
constexpr SpecialTokens kSpecial{.cls = 101, .sep = 102};

}  // namespace

TEST_CASE("a single text keeps its first pieces") {
  const Encoded encoded = encode_pieces({1, 2, 3, 4}, std::nullopt, kSpecial, 5);
  CHECK(encoded.token_ids == Ids{101, 1, 2, 3, 102});
  CHECK(encoded.token_types == Ids{0, 0, 0, 0, 0});
}

TEST_CASE("a pair loses from the end of the longer text, from the second when both are equal") {
  const Encoded even = encode_pieces({1, 2, 3, 4}, Ids{5, 6}, kSpecial, 8);
  CHECK(even.token_ids == Ids{101, 1, 2, 3, 102, 5, 6, 102});
  CHECK(even.token_types == Ids{0, 0, 0, 0, 0, 1, 1, 1});
  CHECK(encode_pieces({1, 2, 3}, Ids{5, 6, 7}, kSpecial, 8).token_ids == Ids{101, 1, 2, 3, 102, 5, 6, 102});
  CHECK(encode_pieces({1}, Ids{5, 6, 7, 8}, kSpecial, 6).token_ids == Ids{101, 1, 102, 5, 6, 102});
}

TEST_CASE("what fits is left as it is") {
  CHECK(encode_pieces({1, 2}, Ids{3}, kSpecial, 6).token_ids == Ids{101, 1, 2, 102, 3, 102});
}

TEST_CASE("a length without room for the texts is refused") {
  CHECK_THROWS_WITH_AS(encode_pieces({1}, Ids{2}, kSpecial, 4),
                       "--max-seq-length: expected at least 5 for pairs, got 4", Error);
  CHECK_THROWS_AS(encode_pieces({1}, std::nullopt, kSpecial, 2), Error);
}
