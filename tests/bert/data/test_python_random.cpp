#include "bert/data/python_random.h"

#include <doctest/doctest.h>

#include <numeric>
#include <vector>

using bertrand::data::PythonRandom;

TEST_CASE("random.Random(12345) of CPython, number for number") {
  PythonRandom uniform(12345);
  CHECK(uniform.random() == 0.41661987254534116);
  CHECK(uniform.random() == 0.010169169457068361);
  CHECK(uniform.random() == 0.8252065092537432);

  PythonRandom integers(12345);
  for (const unsigned expected : {7, 1, 5, 6, 4}) CHECK(1 + integers.below(10) == expected);  // randint(1, 10)

  PythonRandom shuffling(12345);
  std::vector<int> numbers(10);
  std::iota(numbers.begin(), numbers.end(), 0);
  shuffling.shuffle(std::span(numbers));
  CHECK(numbers == std::vector<int>{8, 7, 3, 5, 1, 2, 9, 4, 0, 6});

  PythonRandom raw(12345);
  CHECK(raw.bits(32) == 1789368711);
  CHECK(raw.bits(5) == 23);
}

TEST_CASE("other seeds: nothing, negative, longer than 32 bits") {
  CHECK(PythonRandom(0).random() == 0.8444218515250481);
  CHECK(PythonRandom(-12345).random() == 0.41661987254534116);
  CHECK(PythonRandom(1234567890123456789).random() == 0.8540990887769795);
  PythonRandom wide(7);
  CHECK(wide.bits(53) == 8537610396283960u);
  CHECK(wide.below(10000000000u) == 4942859575u);
  const std::vector<int> items{3, 1, 4, 1, 5, 9, 2, 6};
  PythonRandom choosing(99);
  for (const int expected : {2, 2, 1, 4, 1, 1, 4, 1}) CHECK(choosing.choice(std::span<const int>(items)) == expected);
}

TEST_CASE("the state is renewed after 624 numbers") {
  PythonRandom random(1);
  double last = 0;
  for (int i = 0; i < 2000; ++i) last = random.random();
  CHECK(last == 0.4499663746974547);
}
