// What the targets share. A target is one function that reads bytes as if they came from outside: scripts/fuzz.sh runs
// it with bytes that libFuzzer makes, and test_corpus.cpp with those that are kept in corpus/.
#pragma once
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "io/error.h"

// Each target is one function of this name. If several are in one program, each file gets a name of its own for it.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace fuzz {

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// Whether it begins as a stream of gzip or zstd, which the target `compressed` reads. In other targets these take the
/// time: 60 bytes can be megabytes of empty lines.
inline bool is_compressed(std::string_view text) {
  return text.starts_with("\x1F\x8B") || text.starts_with("\x28\xB5\x2F\xFD");
}

/// Ends the program unless `ok`: what was read is not as it must be.
inline void require(bool ok, const char* expected) {
  if (ok) return;
  std::fprintf(stderr, "fuzz: expected %s\n", expected);
  std::abort();
}

/// Input is read, or refused by an Error in one line that is no bug. Anything else that is thrown ends the program.
template <class Read>
void read_or_refuse(const Read& read) {
  try {
    read();
  } catch (const bertrand::Error& error) {
    const std::string_view line = error.what();
    require(error.failure() != bertrand::Failure::bug, error.what());
    require(!line.empty() && line.size() < 4096 && line.find('\n') == line.npos, "an error of one line");
  }
}

/// A directory, in memory if possible, for readers of files; it goes away with the process.
class Directory {
 public:
  Directory() {
    const bool has_memory = ::access("/dev/shm", W_OK) == 0;
    std::string name = (has_memory ? "/dev/shm" : std::filesystem::temp_directory_path().string()) + "/fuzz-XXXXXX";
    require(::mkdtemp(name.data()) != nullptr, "a directory");
    path_ = name;
  }
  ~Directory() { std::filesystem::remove_all(path_); }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  /// The file of this name, with these bytes.
  std::filesystem::path write(const std::string& name, std::string_view bytes) const {
    std::ofstream(path_ / name, std::ios::binary) << bytes;
    return path_ / name;
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace fuzz
