#include "io/zstd.h"

#include <dlfcn.h>

#include <type_traits>

#include "io/ascii.h"
#include "io/error.h"

namespace bertrand::io {
namespace {

constexpr const char* kLibrary = "libzstd.so.1";

/// As zstd.h 1.x has them; they are part of its stable interface.
struct InBuffer {
  const void* bytes;
  std::size_t size, position;
};
struct OutBuffer {
  void* bytes;
  std::size_t size, position;
};

}  // namespace

struct ZstdStream::Library {
  void* (*create)() = nullptr;
  std::size_t (*free)(void* stream) = nullptr;
  std::size_t (*decompress)(void* stream, OutBuffer* out, InBuffer* in) = nullptr;
  unsigned (*is_error)(std::size_t code) = nullptr;
  const char* (*error_name)(std::size_t code) = nullptr;

  bool open() {
    void* const library = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return false;
    const auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
      return function != nullptr;
    };
    return find(create, "ZSTD_createDStream") && find(free, "ZSTD_freeDStream") &&
           find(decompress, "ZSTD_decompressStream") && find(is_error, "ZSTD_isError") &&
           find(error_name, "ZSTD_getErrorName");
  }
};

const ZstdStream::Library& ZstdStream::library(const std::string& file) {
  static Library library;
  static const bool opened = library.open();
  if (!opened)
    fail(Failure::io, "{}: zstd: expected the library {}, got none; hint: install libzstd1, or decompress it first",
         file, kLibrary);
  return library;
}

ZstdStream::ZstdStream(const std::string& file) : library_(library(file)), stream_(library_.create()) {
  if (stream_ == nullptr) fail(Failure::memory, "{}: zstd: out of memory", file);
}

ZstdStream::~ZstdStream() { library_.free(stream_); }

std::size_t ZstdStream::decompress(std::string_view& in, char* out, std::size_t size) {
  if (!damage_.empty()) return 0;
  OutBuffer to{out, size, 0};
  InBuffer from{in.data(), in.size(), 0};
  while (to.position < to.size) {
    const std::size_t before = to.position, taken = from.position;
    const std::size_t left = library_.decompress(stream_, &to, &from);
    if (library_.is_error(left) != 0) {
      damage_ = ascii_lower(library_.error_name(left));
      break;
    }
    if (to.position == before && from.position == taken) break;
    whole_ = left == 0;
  }
  in.remove_prefix(from.position);
  return to.position;
}

}  // namespace bertrand::io
