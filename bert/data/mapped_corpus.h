// Corpora that prepare corpus wrote, mapped.
#pragma once
#include <filesystem>
#include <memory>
#include <vector>

#include "bert/data/corpus_manifest.h"
#include "bert/data/corpus_view.h"
#include "bert/data/input_check.h"
#include "io/files.h"

namespace bertrand::data {

struct CorpusCheck {
  InputCheck extent = InputCheck::index;
  int threads = 1;
  int process = 0, processes = 1;  ///< of several processes each reads the files of its share through
};

/// The documents of all directories, one after the other. Opening reads the manifests, and of the other files what the
/// check asks for.
class MappedCorpus : public CorpusView {
 public:
  /// Throws Error(Failure::input) for a directory that is no corpus, one of another vocabulary, of another case or of
  /// other added tokens than the tokenizer's, or files whose size or checksum is not what the manifest says;
  /// Error(Failure::io) if one cannot be read.
  MappedCorpus(const std::vector<std::filesystem::path>& directories, const text::Tokenizer& tokenizer,
               const CorpusCheck& check = {});

  std::size_t bytes() const override { return 0; }
  void let_go() const override;
  /// Lines for people about text that the tokenizer would read in another way.
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  void open(const std::filesystem::path& directory, const CorpusManifest& expected);
  std::span<const std::byte> map(const std::filesystem::path& file, const CorpusArray& expected, std::uint64_t width);
  void compare(const CorpusCheck& check) const;

  struct File {
    std::filesystem::path path;
    CorpusArray expected;
    std::unique_ptr<const io::MappedFile> mapped;
  };
  std::vector<File> files_;
  std::vector<std::string> warnings_;
};

}  // namespace bertrand::data
