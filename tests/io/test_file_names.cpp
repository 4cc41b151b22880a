// What names say of files that need not be there.
#include "io/file_names.h"

#include <doctest/doctest.h>

using namespace bertrand::io;

TEST_CASE("a name alone lies in this directory, and a slash at the end is no name") {
  CHECK(parent_of("a") == ".");
  CHECK(parent_of("a/b") == "a");
  CHECK(parent_of("/a") == "/");
  CHECK(without_slash("a/b/") == "a/b");
  CHECK(without_slash("a/b") == "a/b");
}

TEST_CASE("what a compressor added to a name is no part of its extension, in capitals or not") {
  for (const char* name : {"a.jsonl", "a.jsonl.gz", "A.JSONL.Zst"}) {
    CHECK(plain_extension(name) == ".jsonl");
    CHECK(is_json_lines(name));
    CHECK_FALSE(is_table(name));
  }
  CHECK(is_table("A.TSV.GZ"));
  CHECK(is_compressed_name("a.GZ"));
  CHECK_FALSE(is_compressed_name("a.gz.txt"));
  CHECK(plain_extension("a.gz") == "");
}
