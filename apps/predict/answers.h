// Where answers go: a file that appears when all are in it, or standard output, at once.
#pragma once
#include <filesystem>
#include <memory>
#include <string_view>

#include "io/file_replacer.h"

namespace bertrand::predict {

class Answers {
 public:
  /// An empty path is standard output.
  explicit Answers(const std::filesystem::path& file);

  /// Whole lines. Throws Error(Failure::io), and Error(Failure::interrupted) if a stop is requested while nobody reads
  /// standard output.
  void write(std::string_view lines);
  /// Puts the file in its place. Of nothing written nothing replaces what was there.
  void publish_some();
  void publish();

 private:
  std::unique_ptr<io::FileReplacer> file_;  // null: standard output
  bool has_some_ = false;
};

}  // namespace bertrand::predict
