// config.json and bert_config.json. What was read is written and read again, and has the same text.
#include "bert/directory/config_file.h"
#include "fuzz/fuzz.h"

using namespace bertrand;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  for (const bert::UnknownKeys unknown : {bert::UnknownKeys::keep, bert::UnknownKeys::refuse})
    fuzz::read_or_refuse([&] {
      const std::string written = bert::config_text(bert::parse_config(text, "c", unknown));
      fuzz::require(bert::config_text(bert::parse_config(written, "again", bert::UnknownKeys::keep)) == written,
                    "the same configuration");
    });
  return 0;
}
