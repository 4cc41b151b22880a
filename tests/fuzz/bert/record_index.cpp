// The index beside a TFRecord file: '=' and its bytes as they stand; or any other byte, a header and places, of which
// the sizes and checksums are made right. What it then says of places, the reader of records believes.
#include "bert/data/record_index.h"

#include <cstring>

#include "fuzz/fuzz.h"
#include "io/crc32c.h"
#include "io/file_checksum.h"

using namespace bertrand;

namespace {

constexpr std::size_t kFileBytes = 1000, kHeader = 64, kPlace = 24, kFrame = 16;

struct Records {
  fuzz::Directory directory;
  std::filesystem::path file = directory.write("records", std::string(kFileBytes, 'r'));
};

template <class T>
void put(std::string& bytes, std::size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

std::uint32_t crc32c_of(std::string_view bytes) { return io::crc32c(std::as_bytes(std::span(bytes))); }

/// The fields of Header in bert/data/record_index.cpp.
std::string made_right(std::string bytes, const std::filesystem::path& records) {
  if (bytes.size() < kHeader) return bytes;
  bytes.replace(0, 16, "bertrand records");
  put<std::uint32_t>(bytes, 16, 1);
  put<std::uint64_t>(bytes, 24, kFileBytes);
  put<std::uint64_t>(bytes, 32, (bytes.size() - kHeader) / kPlace);
  put(bytes, 40, io::crc32c_of_sample(records));
  put(bytes, 44, crc32c_of(std::string_view(bytes).substr(kHeader)));
  put(bytes, 60, crc32c_of(std::string_view(bytes).substr(0, 60)));
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Records records;
  const std::string_view text = fuzz::text_of(data, size);
  const bool as_it_stands = text.starts_with('=');
  const std::string rest(text.substr(std::min<std::size_t>(text.size(), 1)));
  records.directory.write(".records.bertrand.idx", as_it_stands ? rest : made_right(rest, records.file));
  for (const data::InputCheck check : {data::InputCheck::none, data::InputCheck::index}) {
    const auto index = data::RecordIndex::open(records.file, check);
    if (!index) continue;
    fuzz::require(index->sums().file_bytes == kFileBytes, "the index of this file");
    for (const data::RecordPlace& place : index->places()) {
      fuzz::require(place.offset <= kFileBytes && place.bytes + kFrame <= kFileBytes - place.offset,
                    "records within the file");
      fuzz::require(place.tokens <= index->sums().longest && place.masked <= index->sums().most_masked,
                    "no record beyond the longest");
    }
  }
  return 0;
}
