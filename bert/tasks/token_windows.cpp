// Alignment of words and pieces, and the windows.
#include "bert/tasks/token_windows.h"

#include <algorithm>

#include "io/error.h"

namespace bertrand::tasks {
namespace {

std::int64_t room_of(const WindowOptions& options) {
  if (options.max_length < 3)
    fail(Failure::usage, "--max-seq-length: expected at least 3 for [CLS], a piece and [SEP], got {}",
         options.max_length);
  return options.max_length - 2;
}

std::int64_t step_of(const WindowOptions& options) {
  const std::int64_t room = room_of(options), overlap = options.overlap.value_or(static_cast<int>(room / 4));
  if (overlap < 0 || overlap >= room)
    fail(Failure::usage, "--doc-stride: expected 0 … {}, less than the pieces of a window, got {}", room - 1, overlap);
  return room - overlap;
}

}  // namespace

std::size_t EncodedSentences::without_pieces() const {
  std::size_t count = 0;
  for (std::size_t w = 0; w < words(); ++w) count += tokens(w).empty();
  return count;
}

void EncodedSentences::forget_words() {
  piece_tokens.clear();
  first_pieces.assign(1, 0);
}

SentenceEncoder::SentenceEncoder(const text::Tokenizer& tokenizer, const WindowOptions& options)
    : caching_(tokenizer),
      special_{.cls = tokenizer.vocabulary().cls_id(), .sep = tokenizer.vocabulary().sep_id()},
      room_(room_of(options)),
      step_(step_of(options)) {}

void SentenceEncoder::append(std::span<const std::string> words, EncodedSentences& to) {
  pieces_.clear();
  const std::int64_t before = to.first_pieces.back();
  for (const std::string& word : words) {
    const std::span<const std::int32_t> ids = caching_.encode(word);
    pieces_.insert(pieces_.end(), ids.begin(), ids.end());
    to.first_pieces.push_back(before + std::ssize(pieces_));
  }
  append_windows(to);
}

void SentenceEncoder::append_windows(EncodedSentences& to) {
  const std::int64_t pieces = std::ssize(pieces_);
  const std::size_t before = to.piece_tokens.size();
  to.piece_tokens.resize(before + pieces_.size());
  std::vector<std::int64_t> contexts(pieces_.size(), -1);  // of each piece, in the best window so far
  io::Spillable<std::int32_t>& ids = to.windows.token_ids;
  for (std::int64_t begin = 0, end = 0; end < pieces; begin += step_) {
    end = std::min(begin + room_, pieces);
    ids.push_back(special_.cls);
    for (std::int64_t piece = begin; piece < end; ++piece) {
      const auto at = static_cast<std::size_t>(piece);
      // Google adds 0.01 of the window's length: of two equal ones the longer window counts.
      const std::int64_t context = 100 * std::min(piece - begin, end - 1 - piece) + (end - begin);
      if (context > contexts[at]) {
        contexts[at] = context;
        to.piece_tokens[before + at] = ids.size();
      }
      ids.push_back(pieces_[at]);
    }
    ids.push_back(special_.sep);
    to.windows.end_example(static_cast<std::int32_t>(end - begin + 2));
  }
  to.cut += pieces > room_;
}

}  // namespace bertrand::tasks
