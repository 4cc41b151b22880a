#include "io/seeded_hash.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <unordered_set>

using bertrand::io::SeededHash;

TEST_CASE("texts that are made to fall into one bucket by the standard hash are spread by one whose key is drawn") {
  constexpr std::size_t kTexts = 1000;
  std::unordered_set<std::string> plain;
  plain.reserve(kTexts);
  for (std::size_t i = 0; plain.size() < kTexts; ++i)
    if (const std::string text = "t" + std::to_string(i); plain.bucket(text) == 0) plain.insert(text);
  const std::unordered_set<std::string, SeededHash> seeded(plain.begin(), plain.end());
  const auto fullest = [](const auto& texts) {
    std::size_t most = 0;
    for (std::size_t bucket = 0; bucket < texts.bucket_count(); ++bucket)
      most = std::max(most, texts.bucket_size(bucket));
    return most;
  };
  CHECK(fullest(plain) == kTexts);
  CHECK(fullest(seeded) < 32);
}

TEST_CASE("the hash of a text depends on all its bytes, their order and their number, and is the same each time") {
  std::set<std::size_t> hashes;
  const std::string letters = "abcdefghijklmnopqrstuvwxyz";
  for (std::size_t size = 0; size <= letters.size(); ++size) {
    std::string text = letters.substr(0, size);
    CHECK(SeededHash()(text) == SeededHash()(std::string(text)));
    hashes.insert(SeededHash()(text));
    hashes.insert(SeededHash()(text + '\0'));
    for (char& byte : text) {
      ++byte;
      hashes.insert(SeededHash()(text));
      --byte;
    }
  }
  CHECK(hashes.size() == 27 + 27 + 26 * 27 / 2);
}
