// The index of a model in shards, model.safetensors.index.json, beside one such file.
#include "bert/directory/located.h"

#include "fuzz/fuzz.h"

using namespace bertrand;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::Directory directory;
  directory.write("a.safetensors", "{}");
  directory.write("model.safetensors.index.json", fuzz::text_of(data, size));
  fuzz::read_or_refuse([&] {
    for (const auto& [file, tensors] : bert::weight_files(directory.path()).safetensors)
      fuzz::require(file == directory.path() / "a.safetensors", "the file beside it");
  });
  return 0;
}
