// A safetensors file: '=' and the file as it stands; or any other byte, two for the length of the header, the header
// and the bytes behind it.
#include "io/safetensors.h"

#include "fuzz/io/tables.h"

using namespace bertrand;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::Directory directory;
  std::string_view text = fuzz::text_of(data, size);
  std::string file;
  if (fuzz::take_byte(text) != '=') {
    file = std::string(fuzz::take(text, 2));
    file.resize(8, '\0');
  }
  const auto path = directory.write("m.safetensors", file.append(text));
  fuzz::read_or_refuse([&] {
    const io::SafetensorsFile read(path);
    for (const io::SafetensorsEntry& entry : read.entries()) {
      unsigned sum = 0;
      for (const std::byte byte : entry.bytes) sum += static_cast<unsigned>(byte);
      fuzz::require(sum <= 255 * entry.bytes.size(), "bytes of the tensor");
      fuzz::require(read.find(entry.name) == &entry, "a tensor under its name");
    }
  });
  return 0;
}
