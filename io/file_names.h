// What the name of a file or directory says, whether it is there or not.
#pragma once
#include <filesystem>
#include <string>

namespace bertrand::io {

/// The directory in which it lies: "." of a name alone.
std::filesystem::path parent_of(const std::filesystem::path& path);
/// A path that ends with a slash has no name of its own: without the slash, the directory has.
std::filesystem::path without_slash(const std::filesystem::path& path);
/// Whether it ends in .gz or .zst, in capitals or not.
bool is_compressed_name(const std::filesystem::path& file);
/// The extension of the file's name without what a compressor added, in lower case: .jsonl of A.JSONL.gz.
std::string plain_extension(const std::filesystem::path& file);
/// Whether that is .csv or .tsv.
bool is_table(const std::filesystem::path& file);
/// Whether it is one of those of files with a word a line: .conll, .conllu, .iob, .iob2 or .bio.
bool is_word_lines(const std::filesystem::path& file);
/// Whether it is .jsonl, .ndjson or .json: a JSON object in each line.
bool is_json_lines(const std::filesystem::path& file);

}  // namespace bertrand::io
