// A compressed file as it stands; or '>' and bytes that gzip packs first, which must come back. However much is read at
// once, the bytes are the same, up to where the first way of reading noticed damage.
#include <zlib.h>

#include "fuzz/io/tables.h"
#include "io/byte_source.h"

using namespace bertrand;

namespace {

constexpr std::size_t kMost = std::size_t{1} << 17;  // 4 KiB of Zstandard may be gigabytes

struct Read {
  std::string bytes, damage;
  bool operator==(const Read&) const = default;
};

Read read(const std::filesystem::path& path, std::size_t step) {
  Read result;
  io::ByteSource source(path, "text");
  std::string part(step, '\0');
  while (result.bytes.size() < kMost) {
    const std::size_t count = source.read(part.data(), std::min(step, kMost - result.bytes.size()));
    result.bytes.append(part, 0, count);
    if (count == 0) break;
  }
  result.damage = source.damage();
  return result;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::Directory directory;
  std::string_view text = fuzz::text_of(data, size);
  if (text.starts_with('>')) {
    text.remove_prefix(1);
    const auto path = directory.path() / "f.gz";
    const gzFile file = gzopen(path.c_str(), "wb1");
    gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
    gzclose(file);
    fuzz::require(read(path, 777) == Read{std::string(text), ""}, "what was packed");
    return 0;
  }
  const auto path = directory.write("f", text);
  fuzz::read_or_refuse([&] {
    const Read at_once = read(path, 1 << 16), in_parts = read(path, 61);
    // The library names the damage, and it takes another way if everything fits at once. That of Zstandard then also
    // sees that a frame has not the size that it says.
    const bool is_zstd = text.starts_with("\x28\xB5\x2F\xFD");
    fuzz::require(in_parts.damage.empty() || !at_once.damage.empty(), "damage at once where there is some in parts");
    fuzz::require(is_zstd || at_once.damage.empty() || !in_parts.damage.empty(), "damage in parts as at once");
    const bool both = at_once.damage.empty()
                          ? at_once.bytes == in_parts.bytes
                          : in_parts.bytes.starts_with(at_once.bytes) || at_once.bytes.starts_with(in_parts.bytes);
    fuzz::require(both, "the same bytes in parts");
    fuzz::require(io::ByteSource(path, "text").is_compressed() || at_once == Read{std::string(text), ""}, "the bytes");
  });
  return 0;
}
