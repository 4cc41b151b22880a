// modules.json of sentence-transformers; and behind the first NUL the files that lie beside it.
#include "bert/inference/sentence_modules.h"

#include "fuzz/fuzz.h"

using namespace bertrand;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::Directory directory;
  const std::string_view text = fuzz::text_of(data, size), first = text.substr(0, text.find('\0')),
                         rest = text.substr(std::min(size, first.size() + 1));
  directory.write("modules.json", first);
  for (const char* name :
       {"config.json", "sentence_bert_config.json", "config_sentence_transformers.json", "tokenizer_config.json"})
    directory.write(name, rest);
  fuzz::read_or_refuse([&] { inference::read_sentence_modules(directory.path(), 16); });
  fuzz::read_or_refuse([&] {
    const int length = inference::read_sentence_length(directory.path(), 512);
    fuzz::require(length >= 3 && length <= 512, "a length with room for a token, and a position for each");
  });
  return 0;
}
