// Corpora that prepare corpus wrote, mapped.
#pragma once
#include <filesystem>
#include <memory>
#include <vector>

#include "bert/data/corpus_manifest.h"
#include "bert/data/corpus_view.h"
#include "io/files.h"

namespace bertrand::data {

/// The documents of all directories, one behind the other. Opening reads the manifests alone.
class MappedCorpus : public CorpusView {
 public:
  /// Throws Error(Failure::input) for a directory that is no corpus, one of another vocabulary or case, or files whose
  /// size is not what the manifest says; Error(Failure::io) if one cannot be read.
  MappedCorpus(const std::vector<std::filesystem::path>& directories, const text::Tokenizer& tokenizer);

  std::size_t bytes() const override { return 0; }
  void let_go() const override;

 private:
  void open(const std::filesystem::path& directory, const CorpusManifest& expected);
  std::span<const std::byte> map(const std::filesystem::path& file, std::uint64_t count, std::uint64_t width);

  std::vector<std::unique_ptr<const io::MappedFile>> files_;
};

}  // namespace bertrand::data
