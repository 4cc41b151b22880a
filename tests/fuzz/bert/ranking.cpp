// A file of triples, and of candidates to rank: once until the first bad line, once past all of them.
#include "bert/tasks/ranking_data.h"
#include "fuzz/fuzz.h"

using namespace bertrand;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const text::Tokenizer tokenizer(
      text::Vocabulary::parse("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n##a\n", "v"));
  static const fuzz::Directory directory;
  const auto file = directory.write("f.tsv", fuzz::text_of(data, size));
  std::vector<std::string> bad;
  for (std::vector<std::string>* kept : {static_cast<std::vector<std::string>*>(nullptr), &bad}) {
    fuzz::read_or_refuse([&] {
      tasks::RankingEncoder encoder(tokenizer, {.sequence = 16, .query = 8});
      const tasks::Triples triples = tasks::read_triples(file, encoder, {}, kept);
      for (std::int64_t i = 0; i < triples.encoded.size(); ++i)
        fuzz::require(triples.encoded.tokens(i) <= 16, "an example that is no longer than asked");
    });
    fuzz::read_or_refuse([&] {
      const tasks::CandidateList list(file, kept);
      std::size_t lines = 0;
      for (const auto& query : list.ranked(std::vector<double>(static_cast<std::size_t>(list.size()))))
        lines += query.size();
      fuzz::require(std::cmp_equal(lines, list.size()), "every line under one query");
    });
  }
  return 0;
}
