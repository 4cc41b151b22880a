// Records framed, checked and read one by one.
#include "io/tfrecord.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "io/byte_source.h"
#include "io/crc32c.h"
#include "io/descriptor.h"
#include "io/error.h"
#include "io/little_endian.h"
#include "io/units.h"

namespace bertrand::io {
namespace {

constexpr std::size_t kHeaderBytes = 12;  // length and its checksum
constexpr std::size_t kFooterBytes = 4;
static_assert(ByteSource::kBeginning == kHeaderBytes);
constexpr std::size_t kChunkBytes = std::size_t{1} << 20;

std::uint32_t masked_crc(std::string_view bytes) { return masked(crc32c(bytes)); }

bool is_good_header(std::string_view header) {
  return header.size() == kHeaderBytes &&
         masked_crc(header.substr(0, 8)) == load_fixed<std::uint32_t>(header.data() + 8);
}

/// A plain file may happen to begin with gzip's two bytes; then its first header has a good checksum.
ByteSource open_records(const std::filesystem::path& file) { return ByteSource(file, "records", is_good_header); }

}  // namespace

/// ByteSource with a buffer in front, for the small reads of headers.
class RecordReader::BufferedSource {
 public:
  explicit BufferedSource(const std::filesystem::path& file) : source_(open_records(file)) {}

  bool is_compressed() const { return source_.is_compressed(); }
  const std::string& damage() const { return source_.damage(); }

  /// Appends up to `size` bytes to `out`, growing it only as far as there are bytes.
  void read(std::string& out, std::uint64_t size) {
    while (size > 0) {
      if (used_ == buffer_.size() && !fill()) return;
      const std::size_t step = std::min<std::uint64_t>(size, buffer_.size() - used_);
      out.append(buffer_, used_, step);
      used_ += step;
      size -= step;
    }
  }

 private:
  bool fill() {
    buffer_.resize(kChunkBytes);
    buffer_.resize(source_.read(buffer_.data(), kChunkBytes));
    used_ = 0;
    return !buffer_.empty();
  }

  ByteSource source_;
  std::string buffer_;
  std::size_t used_ = 0;
};

RecordReader::RecordReader(const std::filesystem::path& file, OnCorrupt on_corrupt)
    : file_(file), on_corrupt_(on_corrupt), source_(std::make_unique<BufferedSource>(file)) {}
RecordReader::~RecordReader() = default;

std::string RecordReader::place() const { return fmt::format("{}@{}", file_.string(), begin_); }
bool RecordReader::is_compressed() const { return source_->is_compressed(); }

/// Reads `size` bytes into `out`; false, and `problem_` says why, if the file has fewer.
bool RecordReader::read(std::string& out, std::uint64_t size, const char* what) {
  out.clear();
  source_->read(out, size);
  end_ += out.size();
  crc32c_ = io::crc32c(out, crc32c_);
  if (out.size() == size) return true;
  if (const std::string& damage = source_->damage(); !damage.empty()) {
    problem_ =
        fmt::format("{}: expected {} bytes of compressed data, got {} and then: {}", what, size, out.size(), damage);
  } else {
    problem_ = fmt::format("{}: expected {} bytes, got {} to the end of the file", what, size, out.size());
  }
  return false;
}

bool RecordReader::crc_is(std::uint32_t stored, std::string_view bytes, const char* what) {
  const std::uint32_t computed = masked_crc(bytes);
  if (stored == computed) return true;
  problem_ = fmt::format("{}: expected {:#010x}, got {:#010x}", what, stored, computed);
  return false;
}

RecordReader::Outcome RecordReader::read_one(std::string& record) {
  begin_ = end_;
  if (!read(header_, kHeaderBytes, "record header")) {
    return header_.empty() && source_->damage().empty() ? Outcome::end : Outcome::damaged_file;
  }
  const auto length_crc = load_fixed<std::uint32_t>(header_.data() + 8);
  if (!crc_is(length_crc, std::string_view(header_).substr(0, 8), "record length crc")) return Outcome::damaged_file;
  const auto length = load_fixed<std::uint64_t>(header_.data());
  if (length > kMostRecord) {
    problem_ = fmt::format("record data: expected at most {}, got {} bytes",
                           bytes_text(static_cast<double>(kMostRecord)), length);
    return Outcome::damaged_file;
  }
  if (!read(record, length, "record data")) return Outcome::damaged_file;
  if (!read(footer_, kFooterBytes, "record data crc")) return Outcome::damaged_file;
  if (!crc_is(load_fixed<std::uint32_t>(footer_.data()), record, "record data crc")) return Outcome::damaged_record;
  return Outcome::record;
}

bool RecordReader::next(std::string& record) {
  while (!ended_) {
    const Outcome outcome = read_one(record);
    if (outcome == Outcome::record) return true;
    ended_ = outcome != Outcome::damaged_record;
    if (outcome == Outcome::end) break;
    const std::string message = fmt::format("{}: {}", place(), problem_);
    if (on_corrupt_ == OnCorrupt::stop) {
      const bool begins_well = begin_ > 0 || is_good_header(header_);
      fail(Failure::input, "{}; hint: {}--on-corrupt skip leaves {} out", message,
           begins_well ? "" : "is it a TFRecord file? ", ended_ ? "the rest of the file" : "it");
    }
    if (skipped_++ == 0) first_skipped_ = message;
    lost_rest_ = ended_;
  }
  record.clear();
  return false;
}

std::string RecordReader::skipped_text() const {
  if (skipped_ == 0) return {};
  std::string text = fmt::format("{}; skipped {} of this file", first_skipped_, counted(skipped_, "corrupt place"));
  if (!lost_rest_) return text;
  text += fmt::format(", and from byte {} on all the rest", begin_);
  std::error_code unknown;  // of a pipe; of a compressed file it is the size of something else
  const std::uint64_t size = std::filesystem::file_size(file_, unknown);
  return unknown || is_compressed() ? text : text + fmt::format(": {} of {} bytes", size - begin_, size);
}

bool is_tfrecord(const std::filesystem::path& file) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(file, ignored)) return false;
  std::string header(kHeaderBytes, '\0');
  header.resize(open_records(file).read(header.data(), kHeaderBytes));
  return is_good_header(header);
}

std::string read_record_at(const std::filesystem::path& file, std::uint64_t offset, std::size_t bytes,
                           std::uint32_t crc32c) {
  const Descriptor descriptor = open_to_read(file);
  if (!descriptor) fail(Failure::io, "{}: open: {}", file.string(), std::strerror(errno));
  std::string framed(kHeaderBytes + bytes + kFooterBytes, '\0');
  const ssize_t count = read_at(descriptor.number(), framed.data(), framed.size(), offset);
  if (count < 0) fail(Failure::io, "{}@{}: read: {}", file.string(), offset, std::strerror(errno));
  const std::string_view record = std::string_view(framed).substr(kHeaderBytes, bytes);
  if (static_cast<std::size_t>(count) < framed.size() ||
      !is_good_header(std::string_view(framed).substr(0, kHeaderBytes)) ||
      load_fixed<std::uint64_t>(framed.data()) != bytes ||
      load_fixed<std::uint32_t>(framed.data() + kHeaderBytes + bytes) != masked(crc32c) ||
      io::crc32c(record) != crc32c) {
    fail(Failure::input, "{}@{}: record: expected {} bytes as they were when the file was first read, got others; {}",
         file.string(), offset, bytes,
         "hint: restore the file; a new run with --on-corrupt skip leaves out what is corrupt");
  }
  return std::string(record);
}

void append_record(std::string& out, std::string_view record) {
  const std::size_t begin = out.size();
  append_fixed(out, static_cast<std::uint64_t>(record.size()));
  append_fixed(out, masked_crc(std::string_view(out).substr(begin, 8)));
  out.append(record);
  append_fixed(out, masked_crc(record));
}

}  // namespace bertrand::io
