// A corpus: a byte for each of the sizes of ids, sentences and documents, those files, and the manifest. Its counts,
// and the hash of the vocabulary, are those of the files if the manifest begins with '='.
#include "bert/data/mapped_corpus.h"

#include "bert/data/pretraining_text.h"
#include "fuzz/fuzz.h"
#include "fuzz/io/tables.h"

using namespace bertrand;

namespace {

const text::Tokenizer& tokenizer() {
  static const text::Tokenizer made(text::Vocabulary::parse("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n##a\n", "v"));
  return made;
}

/// The manifest of one shard with such files.
std::string fitting_manifest(std::string_view ids, std::string_view sentences, std::string_view documents) {
  data::CorpusManifest manifest = data::manifest_for(tokenizer());
  manifest.shards.push_back({.ids = {.count = ids.size() / 2},
                             .sentences = {.count = std::max<std::uint64_t>(1, sentences.size() / 8)},
                             .documents = {.count = std::max<std::uint64_t>(1, documents.size() / 8)}});
  return io::json_text(manifest.to_json());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::Directory directory;
  std::string_view text = fuzz::text_of(data, size);
  const std::size_t ids_size = fuzz::take_byte(text), sentences_size = fuzz::take_byte(text),
                    documents_size = fuzz::take_byte(text);
  const std::string_view ids = fuzz::take(text, ids_size), sentences = fuzz::take(text, sentences_size),
                         documents = fuzz::take(text, documents_size);
  directory.write("shard-00000.ids", ids);
  directory.write("shard-00000.sentences", sentences);
  directory.write("shard-00000.documents", documents);
  const std::string manifest = text.starts_with('=') ? fitting_manifest(ids, sentences, documents) : std::string(text);
  directory.write(data::kCorpusManifest, manifest);
  fuzz::read_or_refuse([&] {
    const auto corpus =
        std::make_shared<data::MappedCorpus>(std::vector<std::filesystem::path>{directory.path()}, tokenizer(),
                                             data::CorpusCheck{.extent = data::InputCheck::none});
    for (const bool next_sentence : {false, true}) {
      data::PretrainingText examples(corpus, tokenizer().vocabulary(),
                                     {.pairs = {.max_seq_length = 16, .next_sentence = next_sentence}});
      for (std::int64_t i = 0; i < examples.examples(0); ++i) {
        const data::PretrainingExample example = examples.example(0, i);
        fuzz::require(example.token_ids.size() <= 16, "an example that is no longer than asked");
        for (const std::int32_t id : example.token_ids)
          fuzz::require(id >= 0 && id < tokenizer().vocabulary().size(), "ids of the vocabulary");
      }
    }
  });
  return 0;
}
