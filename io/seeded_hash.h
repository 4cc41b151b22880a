// A hash of texts that others choose.
#pragma once
#include <cstddef>
#include <string_view>

namespace bertrand::io {

/// For unordered containers whose keys come from a file. Of std::hash everybody knows the seed, so that keys can be
/// made that all have the same hash, and each is compared with all before it. The key of this one is drawn when a
/// program begins: the hash is a polynomial at the key, over the prime 2^61 - 1, and two texts of n parts of 7 bytes
/// have the same one for at most n keys of 2^61. The order in such a container is another one in each run. Where speed
/// does not matter, std::map and std::set do as well.
struct SeededHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const;
};

}  // namespace bertrand::io
