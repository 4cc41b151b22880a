#include "bert/data/corpus_view.h"

#include <fmt/format.h>

#include <algorithm>

#include "io/error.h"
#include "io/units.h"

namespace bertrand::data {

void Sentences::refuse(std::size_t i) const {
  fail(Failure::input,
       "{}: document {}, sentence {}: expected tokens in order among {}, got {} to {}; hint: make the corpus again",
       part, document, i, part_tokens, places[i], places[i + 1]);
}

void CorpusView::add(const CorpusPart& part) {
  if (part.documents.size() < 2) return;
  parts_.push_back({part, documents_, tokens_});
  documents_ += part.documents.size() - 1;
  sentences_ += part.sentences.empty() ? 0 : part.sentences.size() - 1;
  tokens_ += part.ids.size();
}

const CorpusView::Placed& CorpusView::part_of_document(std::uint64_t document) const {
  check(document < documents_, "corpus: document {} of {}", document, documents_);
  return *--std::ranges::upper_bound(parts_, document, {}, &Placed::first_document);
}

Sentences CorpusView::sentences(std::uint64_t document) const {
  const Placed& placed = part_of_document(document);
  const CorpusPart& part = placed.part;
  const std::size_t number = document - placed.first_document;
  const std::uint64_t begin = part.documents[number], end = part.documents[number + 1];
  if (begin >= end || end >= part.sentences.size())
    fail(Failure::input,
         "{}: document {}: expected sentences in order among {}, got {} to {}; hint: make the corpus again", part.name,
         number, part.sentences.empty() ? 0 : part.sentences.size() - 1, begin, end);
  return {.base = placed.first_token,
          .places = part.sentences.subspan(begin, end - begin + 1),
          .part = part.name,
          .document = number,
          .part_tokens = part.ids.size()};
}

void CorpusView::append_ids(std::uint64_t begin, std::uint64_t count, std::vector<std::int32_t>& out) const {
  const auto after = std::ranges::upper_bound(parts_, begin, {}, &Placed::first_token);
  check(after != parts_.begin(), "corpus: token {} of an empty corpus", begin);
  const Placed& placed = *(after - 1);
  const CorpusPart& part = placed.part;
  const std::uint64_t first = begin - placed.first_token, size = part.ids.size();
  if (first > size || count > size - first)
    fail(Failure::input, "{}: tokens: expected places below {}, got {} to {}; hint: make the corpus again", part.name,
         size, first, first + count);
  for (std::uint64_t i = first; i < first + count; ++i) {
    const std::int32_t id = part.ids[i];
    if (id < 0 || id >= vocabulary_size_)
      fail(Failure::input, "{}: token {}: expected an id below {}, the vocabulary's size, got {}; {}", part.name, i,
           vocabulary_size_, id, "hint: make the corpus again");
    out.push_back(id);
  }
}

std::string doubt_about_sentences(std::uint64_t documents, std::uint64_t sentences) {
  if (sentences >= 2 * documents) return "";
  return fmt::format(
      "{} with {}: pairs of a document of one sentence are all random, and the end of a sentence "
      "that is longer than an example is left out; hint: a sentence a line, or pretrain --no-next-sentence",
      io::counted(documents, "document"), io::counted(sentences, "sentence"));
}

}  // namespace bertrand::data
