// A checkpoint of TensorFlow: two bytes for the length of its index, the index, and two shards of equal length.
#include "fuzz/io/tables.h"
#include "io/tensor_bundle.h"

using namespace bertrand;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::Directory directory;
  std::string_view text = fuzz::text_of(data, size);
  const std::size_t low = fuzz::take_byte(text), length = low + 256 * fuzz::take_byte(text);
  directory.write("m.index", fuzz::table_of_entries(fuzz::take(text, length)));
  directory.write("m.data-00000-of-00001", text);
  directory.write("m.data-00000-of-00002", text.substr(0, text.size() / 2));
  directory.write("m.data-00001-of-00002", text.substr(text.size() / 2));
  fuzz::read_or_refuse([&] {
    const io::BundleFile file(directory.path() / "m");
    for (const io::BundleEntry& entry : file.entries())
      fuzz::read_or_refuse([&] {
        unsigned sum = 0;
        for (const std::byte byte : file.bytes(entry)) sum += static_cast<unsigned>(byte);
        fuzz::require(sum <= 255 * entry.size, "bytes of the tensor");
        file.verify({&entry}, 1);
      });
  });
  return 0;
}
