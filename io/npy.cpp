#include "io/npy.h"

#include <fmt/format.h>

#include "io/error.h"

namespace bertrand::io {

std::string npy_header(std::span<const std::size_t> shape) {
  constexpr std::size_t kAlignment = 64, kBefore = 10, kMost = 65535;
  std::string sizes;
  for (const std::size_t size : shape) sizes += fmt::format("{}{}", sizes.empty() ? "" : ", ", size);
  if (shape.size() == 1) sizes += ',';  // a tuple of one
  std::string dictionary = fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}), }}", sizes);
  const std::size_t end = kBefore + dictionary.size() + 1;  // of the newline
  dictionary += std::string((kAlignment - end % kAlignment) % kAlignment, ' ') + '\n';
  check(dictionary.size() <= kMost, "npy: expected a header of at most {} bytes, got {}", kMost, dictionary.size());
  std::string header = "\x93NUMPY";
  header += '\x01';
  header += '\0';
  header += static_cast<char>(dictionary.size() & 0xFF);
  header += static_cast<char>(dictionary.size() >> 8);
  return header + dictionary;
}

}  // namespace bertrand::io
