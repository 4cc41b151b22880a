#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "tensor/dtype.h"
#include "tensor/shape.h"

using namespace bertrand;

TEST_CASE("every float16 survives the way through float and back, NaN as NaN") {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    Float16 half;
    half.bits = static_cast<std::uint16_t>(bits);
    const auto value = static_cast<float>(half);
    if (std::isnan(value)) CHECK(std::isnan(static_cast<float>(Float16(value))));
    else CHECK(Float16(value).bits == bits);
  }
}

#if defined(__FLT16_MAX__)
TEST_CASE("float16 rounds as the compiler's own type does") {
  for (std::uint64_t i = 0; i < 200000; ++i) {
    const auto bits = static_cast<std::uint32_t>(i * 0x9E3779B97F4A7C15u >> 32);
    const auto value = std::bit_cast<float>(bits);
    if (std::isnan(value)) continue;
    CHECK(Float16(value).bits == std::bit_cast<std::uint16_t>(static_cast<_Float16>(value)));
  }
}
#endif

TEST_CASE("bfloat16 rounds to nearest with ties to even") {
  CHECK(BFloat16(1.0f).bits == 0x3f80);
  CHECK(BFloat16(std::bit_cast<float>(0x3f808000u)).bits == 0x3f80);  // a tie: to the even neighbour below
  CHECK(BFloat16(std::bit_cast<float>(0x3f818000u)).bits == 0x3f82);  // a tie: to the even neighbour above
  CHECK(BFloat16(std::bit_cast<float>(0x3f808001u)).bits == 0x3f81);
  CHECK(BFloat16(std::numeric_limits<float>::infinity()).bits == 0x7f80);
  CHECK(std::isnan(static_cast<float>(BFloat16(std::numeric_limits<float>::quiet_NaN()))));
}

TEST_CASE("a shape counts axes from both ends and names a missing one") {
  const Shape shape{2, 3, 4};
  CHECK(shape[-1] == 4);
  CHECK(shape[0] == 2);
  CHECK(shape.elements() == 24);
  CHECK(shape.rows() == 6);
  CHECK(fmt::format("{}", shape) == "[2, 3, 4]");
  CHECK_THROWS_WITH_AS(shape[3], "shape: expected an axis from -3 to 2 of 3 dimensions, got 3", Error);
  CHECK_THROWS_AS((Shape{1, 2, 3, 4, 5, 6, 7}), Error);
}
