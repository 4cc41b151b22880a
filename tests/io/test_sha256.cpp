#include "io/sha256.h"

#include <doctest/doctest.h>

#include <string>

using namespace bertrand::io;

TEST_CASE("SHA-256 of the test vectors of FIPS 180-4") {
  CHECK(sha256("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(sha256(std::string(1'000'000, 'a')) == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("a hash does not depend on the parts in which its bytes come") {
  std::string bytes;
  for (int i = 0; i < 300; ++i) bytes.push_back(static_cast<char>(i * 37 + i / 7));
  for (std::size_t size = 0; size <= bytes.size(); size += 7) {
    const std::string_view part = std::string_view(bytes).substr(0, size);
    for (const std::size_t cut : {std::size_t{0}, size / 3, size / 2, size}) {
      Sha256 hash;
      hash.add(part.substr(0, cut));
      hash.add(part.substr(cut));
      CHECK(hash.hex() == sha256(part));
    }
  }
}

TEST_CASE("the instructions of the processor and the portable rounds give the same state") {
  std::string bytes;
  for (int i = 0; i < 5 * 64 + 1; ++i) bytes.push_back(static_cast<char>(i * 91 + i / 5));
  const auto blocks = std::as_bytes(std::span(bytes.data() + 1, 5 * 64));
  Sha256State state{1, 2, 3, 4, 5, 6, 7, 0x80000008}, portable = state;
  add_sha256_blocks(state, blocks);
  add_sha256_blocks_portably(portable, blocks);
  CHECK(state == portable);
}
