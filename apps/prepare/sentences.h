// prepare sentences: raw text to a sentence a line, a blank line between documents.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace bertrand::prepare {

struct SentencesOptions {
  std::vector<std::filesystem::path> inputs;
  std::filesystem::path output;
  bool overwrite = false;  ///< replaces a file that is there
  std::string language = "en";
  bool unwrap = false;  ///< a blank line ends a paragraph, not a document; its lines are joined
};

/// Writes the file. Memory does not grow with the inputs. Throws Error.
void write_sentences(const SentencesOptions& options);

}  // namespace bertrand::prepare
