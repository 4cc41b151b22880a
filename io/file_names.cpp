#include "io/file_names.h"

#include "io/ascii.h"

namespace bertrand::io {
namespace {

namespace fs = std::filesystem;

std::string lower_extension(const fs::path& file) { return ascii_lower(file.extension().string()); }

}  // namespace

fs::path parent_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

fs::path without_slash(const fs::path& path) { return path.has_filename() ? path : path.parent_path(); }

bool is_compressed_name(const fs::path& file) {
  const std::string last = lower_extension(file);
  return last == ".gz" || last == ".zst";
}

std::string plain_extension(const fs::path& file) {
  return lower_extension(is_compressed_name(file) ? file.stem() : file);
}

bool is_table(const fs::path& file) {
  const std::string extension = plain_extension(file);
  return extension == ".csv" || extension == ".tsv";
}

bool is_word_lines(const fs::path& file) {
  const std::string extension = plain_extension(file);
  return extension == ".conll" || extension == ".conllu" || extension == ".iob" || extension == ".iob2" ||
         extension == ".bio";
}

bool is_json_lines(const fs::path& file) {
  const std::string extension = plain_extension(file);
  return extension == ".jsonl" || extension == ".ndjson" || extension == ".json";
}

}  // namespace bertrand::io
