#include <doctest/doctest.h>

#include <initializer_list>

#include "distributed/faster_way.h"

using bertrand::distributed::FasterWay;

TEST_CASE("the faster of two ways is taken after each was tried, and the other way is tried again now and then") {
  for (const int faster : {0, 1}) {
    FasterWay ways;
    int turns[2] = {0, 0};
    for (int i = 0; i < 64; ++i) {
      const int way = ways.next();
      ++turns[way];
      ways.took(way == faster ? 1 : 2);
    }
    CHECK(turns[faster] == 60);
    CHECK(turns[1 - faster] == 4);  // at first and at turns 16, 32 and 48
  }
}

TEST_CASE("a way that becomes slow is left at once, and tried again now and then") {
  FasterWay ways;
  for (int i = 0; i < 10; ++i) ways.took(ways.next() == 0 ? 1 : 2);
  CHECK(ways.next() == 0);
  for (int i = 10; i < 32; ++i) ways.took(ways.next() == 0 ? 3 : 2);
  CHECK(ways.next() == 0);  // tried again
  ways.took(3);
  CHECK(ways.next() == 1);
}
