#include "io/input_files.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "io/files.h"
#include "io/nearest_name.h"
#include "io/units.h"

namespace bertrand::io {
namespace {

std::string_view other_than_text(std::string_view beginning) {
  if (beginning.starts_with("\xFF\xFE") || beginning.starts_with("\xFE\xFF")) return "; hint: it looks like UTF-16";
  if (beginning.starts_with("\x1F\x8B")) return "; hint: it looks like gzip";
  if (beginning.starts_with("\xFD\x37zXZ")) return "; hint: it looks like xz: unpack it first";
  if (beginning.starts_with("BZh")) return "; hint: it looks like bzip2: unpack it first";
  if (beginning.starts_with("PK\3\4"))
    return "; hint: it looks like a zip file or a spreadsheet: save it as text or CSV";
  return "";
}

/// The absolute path, "model" of "model/".
std::filesystem::path from_root(const std::filesystem::path& path) {
  std::error_code ignored;
  const std::filesystem::path whole = std::filesystem::absolute(path, ignored);
  return whole.has_filename() ? whole : whole.parent_path();
}

/// The names in a directory, in order; none of one so full that to look through it takes long.
std::vector<std::string> names_in(const std::filesystem::path& directory, Named named) {
  constexpr int kMost = 1000;
  std::vector<std::string> names;
  std::error_code error, ignored;
  int seen = 0;
  for (std::filesystem::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    if (++seen > kMost) return {};
    const bool wanted = named == Named::any || !entry->is_directory(ignored);
    if (wanted && entry->exists(ignored)) names.push_back(entry->path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace

std::string near_beside(const std::filesystem::path& absent, Named named) {
  const std::filesystem::path whole = from_root(absent);
  return did_you_mean(whole.filename().string(), names_in(whole.parent_path(), named));
}

std::string hint_of_absent(const std::filesystem::path& absent, Named named) {
  const std::filesystem::path whole = from_root(absent), directory = whole.parent_path();
  const bool may_be_more = whole.filename().string().find(',') != std::string::npos ||
                           absent.string().find_first_of("*?") != std::string::npos;
  if (may_be_more)
    return "; hint: names have blanks between them, and patterns are the shell's, which knows none in quotes";
  std::error_code error;
  if (const std::filesystem::path target = std::filesystem::read_symlink(whole, error); !error)
    return fmt::format("; hint: it is a link to {}", target.string());
  if (!std::filesystem::is_directory(directory, error))
    return fmt::format("; hint: {} is no directory", directory.string());
  if (const std::string near = near_beside(absent, named); !near.empty()) return near;
  return absent.is_absolute() ? "" : fmt::format("; hint: it was looked for in {}", directory.string());
}

void refuse_open(const std::filesystem::path& file, int error) {
  const bool is_there = error != ENOENT && error != ENOTDIR;
  fail(is_there ? Failure::io : Failure::input, "{}: open: {}{}", file.string(), std::strerror(error),
       is_there ? "" : hint_of_absent(file));
}

void refuse_directory(const std::filesystem::path& file, std::string_view what, Failure failure) {
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored))
    fail(failure, "{}: {}: expected a file, got a directory", file.string(), what);
}

std::string read_small_file(const std::filesystem::path& file, std::string_view what) {
  refuse_directory(file, what, Failure::model);
  std::error_code none;  // what is not there is refused when it is read
  if (std::filesystem::is_other(std::filesystem::status(file, none)))
    fail(Failure::model, "{}: {}: expected a regular file, got a pipe or device", file.string(), what);
  if (const std::uintmax_t bytes = std::filesystem::file_size(file, none); !none && bytes > kMostSmallFile)
    fail(Failure::model, "{}: {}: expected at most {}, got {} bytes", file.string(), what,
         bytes_text(static_cast<double>(kMostSmallFile)), bytes);
  return read_file(file);
}

void refuse_nul(std::string_view bytes, const std::string& file, std::uint64_t lines_before) {
  const std::size_t nul = bytes.find('\0');
  if (nul == std::string_view::npos) return;
  const auto lines = static_cast<std::uint64_t>(std::ranges::count(bytes.substr(0, nul), '\n'));
  fail(Failure::input, "{}:{}: expected text in UTF-8, got a NUL byte{}", file, lines_before + lines + 1,
       lines_before == 0 ? other_than_text(bytes) : "");
}

}  // namespace bertrand::io
