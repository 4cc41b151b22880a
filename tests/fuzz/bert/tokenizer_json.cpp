// tokenizer.json, whose vocabulary becomes one of vocab.txt's form.
#include "bert/directory/tokenizer_json.h"
#include "bert/text/vocabulary.h"
#include "fuzz/fuzz.h"

using namespace bertrand;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::read_or_refuse([&] {
    const bert::TokenizerJson read = bert::parse_tokenizer_json(fuzz::text_of(data, size), "t");
    text::Vocabulary::parse(read.vocabulary, "t");
  });
  return 0;
}
