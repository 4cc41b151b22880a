// The lines of a file, which may be gzip: '=' and the file as it stands, or any other byte and what is packed first.
#include <zlib.h>

#include "fuzz/io/tables.h"
#include "io/line_source.h"

using namespace bertrand;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::Directory directory;
  std::string_view text = fuzz::text_of(data, size);
  const bool packed = fuzz::take_byte(text) != '=';
  const auto path = directory.write("f.txt", text);
  if (packed) {
    const gzFile file = gzopen(path.c_str(), "wb1");
    gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
    gzclose(file);
  }
  fuzz::read_or_refuse([&] {
    io::LineSource lines(path, "text");
    constexpr std::size_t kEnough = std::size_t{1} << 16;  // gzip of 4 KB may hold megabytes, which only take time
    std::size_t bytes = 0;
    for (std::string_view line; bytes < kEnough && lines.next(line);) {
      fuzz::require(line.find('\n') == line.npos && line.find('\0') == line.npos, "a line");
      bytes += line.size() + 1;
    }
    fuzz::require(!packed || bytes <= text.size() + 1, "no more than was packed");
  });
  return 0;
}
