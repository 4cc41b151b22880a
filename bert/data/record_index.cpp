#include "bert/data/record_index.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "io/crc32c.h"
#include "io/error.h"
#include "io/file_checksum.h"
#include "io/file_replacer.h"

namespace bertrand::data {
namespace {

namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little,
              "an index is little-endian, and so is every machine this runs on");

constexpr std::uint64_t kFrameBytes = 16;  // of a record beside its data

struct Header {
  char magic[16] = {'b', 'e', 'r', 't', 'r', 'a', 'n', 'd', ' ', 'r', 'e', 'c', 'o', 'r', 'd', 's'};
  std::uint32_t version = 1;
  std::uint32_t file_crc32c = 0;
  std::uint64_t file_bytes = 0;
  std::uint64_t records = 0;
  std::uint32_t sample_crc32c = 0, places_crc32c = 0;
  std::uint32_t longest = 0, most_masked = 0;
  std::int32_t largest_id = 0;
  std::uint32_t header_crc32c = 0;  // of what stands before it
};
static_assert(sizeof(Header) == 64 && sizeof(RecordPlace) == 24);

std::uint32_t crc32c_of(const Header& header) {
  return io::crc32c(std::as_bytes(std::span(&header, 1)).first(offsetof(Header, header_crc32c)));
}

bool fits(const RecordPlace& place, const Header& header) {
  return place.offset <= header.file_bytes && place.bytes + kFrameBytes <= header.file_bytes - place.offset &&
         place.tokens <= header.longest && place.masked <= header.most_masked;
}

}  // namespace

fs::path RecordIndex::file_of(const fs::path& records, const fs::path& directory) {
  // A hidden name: what a shell finds for DIR/* are records.
  if (directory.empty()) return records.parent_path() / fmt::format(".{}.bertrand.idx", records.filename().string());
  const std::string place = fs::absolute(records).lexically_normal().string();  // files of many folders share names
  return directory / fmt::format("{}-{:08x}.bertrand.idx", records.filename().string(),
                                 io::crc32c(std::as_bytes(std::span(place))));
}

std::optional<RecordIndex> RecordIndex::open(const fs::path& records, InputCheck check, const fs::path& directory) {
  const fs::path file = file_of(records, directory);
  try {
    RecordIndex index;
    index.mapped_ = std::make_unique<const io::MappedFile>(file);
    const std::span<const std::byte> bytes = index.mapped_->bytes();
    Header header;
    if (bytes.size() < sizeof header) return std::nullopt;
    std::memcpy(&header, bytes.data(), sizeof header);
    const Header expected;
    if (std::memcmp(header.magic, expected.magic, sizeof header.magic) != 0 || header.version != expected.version ||
        header.header_crc32c != crc32c_of(header) || header.file_bytes != fs::file_size(records) ||
        header.records != (bytes.size() - sizeof header) / sizeof(RecordPlace) ||
        bytes.size() != sizeof header + header.records * sizeof(RecordPlace) ||
        header.places_crc32c != io::crc32c(bytes.subspan(sizeof header)) ||
        !std::ranges::all_of(index.places(), [&](const RecordPlace& place) { return fits(place, header); }) ||
        (check != InputCheck::none && header.sample_crc32c != io::crc32c_of_sample(records)))
      return std::nullopt;
    index.sums_ = {.file_bytes = header.file_bytes,
                   .file_crc32c = header.file_crc32c,
                   .longest = header.longest,
                   .most_masked = header.most_masked,
                   .largest_id = header.largest_id};
    return index;
  } catch (const Error&) {  // an index that is not there or cannot be read is none
    return std::nullopt;
  }
}

void RecordIndex::write(io::Files& files, const fs::path& records, std::span<const RecordPlace> places,
                        const RecordSums& sums, const fs::path& directory) {
  Header header;
  header.file_crc32c = sums.file_crc32c;
  header.file_bytes = sums.file_bytes;
  header.records = places.size();
  header.sample_crc32c = io::crc32c_of_sample(records);
  header.places_crc32c = io::crc32c(std::as_bytes(places));
  header.longest = sums.longest;
  header.most_masked = sums.most_masked;
  header.largest_id = sums.largest_id;
  header.header_crc32c = crc32c_of(header);
  io::FileReplacer out(files, file_of(records, directory));
  const auto write = [&](std::span<const std::byte> bytes) {
    out.write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  };
  write(std::as_bytes(std::span(&header, 1)));
  write(std::as_bytes(places));
  out.publish();
}

void RecordIndex::remove(io::Files& files, const fs::path& records, const fs::path& directory) {
  const fs::path file = file_of(records, directory);
  std::error_code ignored;
  if (fs::is_regular_file(file, ignored)) files.remove_all(file);
}

std::span<const RecordPlace> RecordIndex::places() const {
  const std::span<const std::byte> bytes = mapped_->bytes().subspan(sizeof(Header));
  return {reinterpret_cast<const RecordPlace*>(bytes.data()), bytes.size() / sizeof(RecordPlace)};
}

}  // namespace bertrand::data
