// vocab.txt, and words of the file itself cut into its pieces.
#include "bert/text/vocabulary.h"

#include "bert/text/tokenizer.h"
#include "fuzz/fuzz.h"

using namespace bertrand;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(fuzz::text_of(data, size));
  fuzz::read_or_refuse([&] {
    const auto vocabulary = text::Vocabulary::parse(bytes, "v", {.require_specials = false});
    fuzz::require(
        text::Vocabulary::parse(vocabulary.text(), "again", {.require_specials = false}).size() == vocabulary.size(),
        "the same vocabulary");
    for (std::int32_t id = 0; id < vocabulary.size(); ++id) {
      const std::string_view token = vocabulary.token(id);
      fuzz::require(vocabulary.token(vocabulary.find(token)) == token, "a token under its id");
    }
  });
  return 0;
}
