// The one door through which files are written (all but a run's lock), so that tests can fail any call and see that
// nothing is lost.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace bertrand::io {

/// How a file is opened to be written. A link that another user put there, to a file of ours say, is not followed, but
/// by create_through.
enum class Opening {
  create,         ///< truncates
  create_new,     ///< a file that must not be there yet
  append,         ///< creates it if needed; every write goes to the end
  create_through  ///< as create, also through a link of one's own
};

/// The calls that change a disk. Each throws Error(Failure::io) naming path, call and the system's reason.
class Files {
 public:
  virtual ~Files() = default;
  virtual int open(const std::filesystem::path& file, Opening opening);  ///< returns a descriptor
  virtual void write(int descriptor, std::span<const std::byte> bytes, const std::filesystem::path& file);
  virtual void sync(int descriptor, const std::filesystem::path& file);
  virtual void close(int descriptor, const std::filesystem::path& file);
  virtual void make_directory(const std::filesystem::path& directory);
  virtual void sync_directory(const std::filesystem::path& directory);
  virtual void rename(const std::filesystem::path& from, const std::filesystem::path& to);
  virtual void remove_all(const std::filesystem::path& path);
  virtual void cut(const std::filesystem::path& file, std::uint64_t bytes);  ///< truncates it to its first `bytes`

  static Files& system();
};

/// Throws Error(Failure::io) naming path, call and the system's reason for the error number.
[[noreturn]] void refuse_call(const std::filesystem::path& file, const char* call, int error);

/// Writes one file from front to end, or goes on at its end. finish() makes it durable; without it the file is closed
/// as it is.
class FileWriter {
 public:
  FileWriter(Files& files, const std::filesystem::path& file, Opening opening = Opening::create);
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }
  /// fsync and close.
  void finish();

  const std::filesystem::path& path() const { return file_; }

 private:
  Files& files_;
  std::filesystem::path file_;
  int descriptor_;  // -1 when it is finished
};

/// A file of its own directory, say, that nobody looks at yet: written and made durable.
void write_file(Files& files, const std::filesystem::path& file, std::string_view text);

/// Replaces `file` by `text` in one step: written beside it, made durable, renamed.
void replace_file(Files& files, const std::filesystem::path& file, std::string_view text);

/// A whole file. Throws as MappedFile does.
std::string read_file(const std::filesystem::path& file);

/// A file as memory, read only as far as it is looked at.
class MappedFile {
 public:
  /// Throws Error(Failure::input) if it is not there or no regular file, Error(Failure::io) if it cannot be read, and
  /// Error(Failure::memory) if the process may have no more memory.
  explicit MappedFile(const std::filesystem::path& file);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(data_), size_}; }
  std::string_view text() const { return {static_cast<const char*>(data_), size_}; }
  /// Gives back the memory of what was looked at; it is read again when it is next looked at. Others may read it
  /// meanwhile. For a file that is looked at here and there.
  void let_go() const;

 private:
  void* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace bertrand::io
