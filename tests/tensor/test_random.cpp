#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "tensor/random.h"

using namespace bertrand;

TEST_CASE("Philox gives the known answers of its authors") {
  using Block = std::array<std::uint32_t, 4>;
  CHECK(philox4x32({0, 0, 0, 0}, 0) == Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, 0xffffffffffffffff) ==
        Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0x299f31d0a4093822) ==
        Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("draws have the moments of their distributions") {
  Random random(42);
  constexpr int kDraws = 200000;
  double uniform = 0, normal = 0, squares = 0, truncated_squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    uniform += random.uniform();
    const double z = random.normal();
    normal += z;
    squares += z * z;
    const double t = random.truncated_normal(1);
    CHECK(std::abs(t) <= 2);
    truncated_squares += t * t;
  }
  CHECK(uniform / kDraws == doctest::Approx(0.5).epsilon(0.01));
  CHECK(std::abs(normal / kDraws) < 0.01);
  CHECK(squares / kDraws == doctest::Approx(1).epsilon(0.02));
  CHECK(std::sqrt(truncated_squares / kDraws) ==
        doctest::Approx(0.8796).epsilon(0.01));  // of a normal cut at two sigma
}

TEST_CASE("a bounded draw reaches every value and none beyond") {
  Random random(1);
  std::set<std::uint32_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(random.below(7));
  CHECK(seen == std::set<std::uint32_t>{0, 1, 2, 3, 4, 5, 6});
}

TEST_CASE("a stream goes on from any number") {
  Random whole(42);
  for (std::uint64_t drawn = 0; drawn < 13; ++drawn) {
    CHECK(whole.drawn() == drawn);
    Random rest(42, drawn);
    CHECK(rest.drawn() == drawn);
    const std::uint32_t next = whole.next();
    CHECK(rest.next() == next);
  }
}

TEST_CASE("names hash apart, and mixing is not symmetric") {
  CHECK(hash_name("query.weight") != hash_name("query.bias"));
  CHECK(hash_name("") != hash_name(std::string_view("\0", 1)));
  CHECK(mix(1, 2) != mix(2, 1));
}
