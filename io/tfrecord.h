// TFRecord, TensorFlow's file of byte strings: u64 length, its masked CRC-32C, the bytes, their masked CRC-32C, all
// little-endian (tensorflow/core/lib/io/record_writer.h). Files compressed by gzip or Zstandard are read as well.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace bertrand::io {

/// What to do about a record that is not as it was written.
enum class OnCorrupt {
  stop,  ///< throw
  skip   ///< leave it out; if its length cannot be trusted, leave out the rest of the file
};

/// Bytes of one record: a file as large as the memory is could be one record, and some bytes of a compressed file could
/// become any length.
constexpr std::uint64_t kMostRecord = std::uint64_t{1} << 28;

/// Whether a file, which may be compressed, begins as every TFRecord file with a record does: with a length and its
/// checksum. False for what is no regular file. Throws Error(Failure::io) if it cannot be read.
bool is_tfrecord(const std::filesystem::path& file);

/// Reads the records of one file in order. Every error is one line that begins with <file>@<offset of the record>; in a
/// compressed file the offset counts decompressed bytes.
class RecordReader {
 public:
  /// Opens a file. Throws Error(Failure::input) if it does not exist, Error(Failure::io) if it cannot be read.
  explicit RecordReader(const std::filesystem::path& file, OnCorrupt on_corrupt = OnCorrupt::stop);
  ~RecordReader();

  /// The next record; false at the end of the file. With OnCorrupt::stop throws Error(Failure::input) for a wrong
  /// CRC, a file that ends within a record, and a record of more than kMostRecord bytes. Takes no more memory than the
  /// file has bytes left, whatever it claims.
  bool next(std::string& record);

  /// Where the record that next() gave last begins.
  std::uint64_t offset() const { return begin_; }
  /// <file>@<offset> of that record, for messages about its contents.
  std::string place() const;

  /// The CRC-32C of all bytes that were read so far: of the whole file, when next() has said false and none was
  /// skipped.
  std::uint32_t crc32c() const { return crc32c_; }

  /// Whether the file is compressed, so that its records cannot be read one by one.
  bool is_compressed() const;

  std::uint64_t skipped() const { return skipped_; }  ///< corrupt places left out
  /// "" or a line about them: the first, as stop would have said it, how many there are, and how much of the file was
  /// left out after the last.
  std::string skipped_text() const;

 private:
  class BufferedSource;
  enum class Outcome { record, damaged_record, damaged_file, end };
  Outcome read_one(std::string& record);
  bool read(std::string& out, std::uint64_t size, const char* what);
  bool crc_is(std::uint32_t stored, std::string_view bytes, const char* what);

  std::filesystem::path file_;
  OnCorrupt on_corrupt_;
  std::unique_ptr<BufferedSource> source_;
  std::string header_, footer_;
  std::string problem_;      // what is wrong with the record being read
  std::uint64_t begin_ = 0;  // of the last record
  std::uint64_t end_ = 0;    // of what was read
  std::uint32_t crc32c_ = 0;
  bool ended_ = false;
  std::uint64_t skipped_ = 0;
  std::string first_skipped_;
  bool lost_rest_ = false;  // the last of them was of unknown length
};

/// The one record of `bytes` bytes with this CRC-32C that begins at `offset` of an uncompressed file, where a
/// RecordReader found it before. Throws Error(Failure::input) as <file>@<offset> if it is no longer there as it was,
/// Error(Failure::io).
std::string read_record_at(const std::filesystem::path& file, std::uint64_t offset, std::size_t bytes,
                           std::uint32_t crc32c);

/// Appends one record with its length and checksums.
void append_record(std::string& out, std::string_view record);

}  // namespace bertrand::io
