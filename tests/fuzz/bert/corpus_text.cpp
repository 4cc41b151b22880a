// Text as prepare corpus reads it: a sentence a line, and JSON lines; in blocks of any size.
#include "bert/data/pretraining_text_corpus.h"

#include "fuzz/fuzz.h"

using namespace bertrand;

namespace {

struct Sink : data::CorpusSink {
  std::vector<std::int32_t> ids;
  void take(const data::TokenisedText& text) override { ids.insert(ids.end(), text.ids.begin(), text.ids.end()); }
  void warn(const std::string& warning) override { fuzz::require(!warning.empty(), "a warning"); }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const text::Tokenizer tokenizer(
      text::Vocabulary::parse("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n##a\n", "v"));
  static const fuzz::Directory directory;
  for (const char* name : {"f.txt", "f.jsonl"}) {
    const auto file = directory.write(name, fuzz::text_of(data, size));
    Sink whole, parts;
    fuzz::read_or_refuse([&] {
      data::tokenise_files({file}, tokenizer, {}, whole, {}, 8192);
      data::tokenise_files({file}, tokenizer, {}, parts, {}, 64);
      fuzz::require(whole.ids == parts.ids, "the same ids whatever the blocks");
    });
  }
  return 0;
}
