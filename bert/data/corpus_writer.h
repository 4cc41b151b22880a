// Text to a corpus that is mapped: prepare corpus.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "bert/data/corpus_manifest.h"
#include "io/files.h"

namespace bertrand::data {

struct CorpusJob {
  std::vector<std::filesystem::path> inputs;  ///< regular files
  std::filesystem::path output;               ///< a name that is free
  int threads = 1;                            ///< the files do not depend on it
  /// As many at most: one ends with the document in which its share of the bytes of the inputs ends. A compressed
  /// input is not divided.
  int shards = 1;
  /// Called with the bytes of text done. What it throws ends the work, which may be gone on with.
  std::function<void(std::uint64_t bytes)> progress = nullptr;
  std::function<bool()> stop = nullptr;                 ///< asked after each block: whether `progress` will throw
  std::uint64_t save_bytes = std::uint64_t{256} << 20;  ///< of text, after which the place is saved
  std::size_t block_bytes = std::size_t{1} << 20;       ///< of text that a thread works on at once
};

struct CorpusResult {
  CorpusManifest manifest;
  std::vector<std::string> warnings;
  std::uint64_t begun_bytes = 0;  ///< of text that an earlier, interrupted call had done
};

/// Fills <output>.partial and renames it when it is whole. What is there of the same job is gone on with, to the same
/// bytes: so an interrupted job is finished by the same call. Memory: some blocks. Throws Error(Failure::usage) if
/// something has the name already, if another process writes there, or if what is there is a link, another user's or of
/// another job; as tokenise_files does; Error(Failure::io).
CorpusResult write_corpus(const CorpusJob& job, const text::Tokenizer& tokenizer,
                          io::Files& files = io::Files::system());

}  // namespace bertrand::data
