// The moments that a run begins with: '=' and an optimizer.safetensors as it stands; or any other byte, and the header
// and the bytes of one, whose length is made right.
#include <cmath>

#include "fuzz/io/tables.h"
#include "tensor/backends.h"
#include "training/run/checkpoint.h"

using namespace bertrand;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::Directory directory;
  static const auto backend = open_cpu({.threads = 1});
  static const nn::Moments moments{
      .first = {{"a.weight", Tensor({2, 3}, DType::f32, *backend)}, {"a.bias", Tensor({3}, DType::f64, *backend)}},
      .second = {{"a.weight", Tensor({2, 3}, DType::f32, *backend)}, {"a.bias", Tensor({3}, DType::f64, *backend)}}};
  std::string_view text = fuzz::text_of(data, size);
  std::string file;
  if (fuzz::take_byte(text) != '=') {
    // The header ends with the last brace.
    const std::uint64_t header = text.rfind('}') == text.npos ? text.size() : text.rfind('}') + 1;
    file.assign(reinterpret_cast<const char*>(&header), sizeof header);
  }
  directory.write("optimizer.safetensors", file.append(text));
  fuzz::read_or_refuse([&] { training::load_moments(directory.path(), moments); });
  return 0;
}
