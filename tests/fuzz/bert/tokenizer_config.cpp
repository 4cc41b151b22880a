// tokenizer_config.json.
#include "bert/directory/tokenizer_config.h"

#include "fuzz/fuzz.h"

using namespace bertrand;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::Directory directory;
  directory.write("tokenizer_config.json", fuzz::text_of(data, size));
  fuzz::read_or_refuse([&] {
    const auto most = bert::read_tokenizer_config(directory.path()).max_chars_per_word;
    fuzz::require(!most || *most > 0, "a length of words");
  });
  return 0;
}
