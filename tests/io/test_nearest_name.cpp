#include "io/nearest_name.h"

#include <doctest/doctest.h>

using namespace bertrand::io;

TEST_CASE("the edit distance counts insertions, deletions, replacements and swaps of neighbours") {
  CHECK(edit_distance("", "") == 0);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("abc", "") == 3);
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance("seed", "sede") == 1);
  CHECK(edit_distance("ca", "abc") == 3);  // the restricted form: no piece is edited twice
  CHECK(edit_distance("hiden_size", "hidden_size") == 1);
}

TEST_CASE("the nearest name is found, and none where nothing is near") {
  CHECK(nearest_name("--batchsize", {"--seed", "--batch-size", "--steps"}) == "--batch-size");
  CHECK(nearest_name("mprc", {"mrpc", "rte"}) == "mrpc");
  CHECK(nearest_name("ab", {"ax", "ay"}) == "ax");  // the first of equals
  CHECK_FALSE(nearest_name("zzzzzz", {"--seed", "--steps"}));
  CHECK(nearest_name("abc", {"axy"}) == "axy");  // of a short name two characters may be wrong
  CHECK_FALSE(nearest_name("abc", {"xyz"}));
  CHECK_FALSE(nearest_name("ab", {"xy"}));
  CHECK(nearest_name("abcdefghi", {"xyzdefghi"}) == "xyzdefghi");  // of a long one a third
  CHECK_FALSE(nearest_name("x", {}));
  CHECK(did_you_mean("mprc", {"mrpc"}) == "; did you mean mrpc?");
  CHECK(did_you_mean("zzzz", {"mrpc"}) == "");
}
