#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <set>
#include <vector>

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

TEST_CASE("a bounded draw is as likely to be each number, if the bound does not divide 2^32 too") {
  // Of 2^32 numbers four go into three here: if none were drawn again, every second one would be a multiple of three.
  Random random(9);
  int count[3] = {};
  for (int i = 0; i < 3000; ++i) ++count[random.below(std::uint32_t{3} << 30) % 3];
  for (const int seen : count) CHECK(std::abs(seen - 1000) < 150);
}

// What is drawn from a seed stays what it was: a run that goes on, or that is repeated, has the same weights, order and
// masks.
TEST_CASE("a seed has the numbers, the normals and the order that it always had") {
  Random random(0);
  for (const std::uint32_t known : {0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u, 0xf8e4cca4u})
    CHECK(random.next() == known);  // Philox of 0, then of 1
  Random normals(5), uniforms(5);
  for (int i = 0; i < 3; ++i) {  // two normals are a point, whose distance comes from the first of two uniform numbers
    const double x = normals.normal(), y = normals.normal(), u = uniforms.uniform();
    CHECK(x * x + y * y == doctest::Approx(-2 * std::log(1 - u)));
    uniforms.uniform();
    CHECK(normals.drawn() == uniforms.drawn());
  }
  Random shuffling(42);
  std::vector<int> order{0, 1, 2, 3, 4, 5, 6, 7};
  shuffling.shuffle(order);
  CHECK(order == std::vector<int>{2, 7, 5, 6, 1, 0, 3, 4});
  CHECK(shuffling.drawn() == 7);  // one for each place but the last
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

TEST_CASE("keys and names are mixed to the same numbers as ever") {
  CHECK(mix(0, 0) == 0xe220a8397b1dcdaf);  // the first number of SplitMix64 from 0
  CHECK(mix(1, 2) == 0xf893a2eefb32555e);
  CHECK(hash_name("") == 0xc3817c016ba4ff30);
  CHECK(hash_name("query.weight") == 0xe691f154c3a33934);
}
