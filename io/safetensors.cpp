#include "io/safetensors.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "io/input_files.h"
#include "io/little_endian.h"
#include "io/safetensors_header.h"
#include "io/say.h"

namespace bertrand::io {
namespace {

constexpr std::uint64_t kMostHeader = 100'000'000;
/// How what `git clone` leaves without Git LFS begins.
constexpr std::string_view kLfsPointer = "version https://git-lfs.github.com/spec/";

/// The header's text. Throws if its length cannot be.
std::string_view header_text(std::span<const std::byte> bytes, const std::string& file) {
  if (bytes.size() < 8)
    fail(Failure::model, "{}@0: header length: expected 8 bytes, got a file of {}", file, bytes.size());
  if (std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()).starts_with(kLfsPointer))
    fail(Failure::model, "{}: expected tensors, got a Git LFS pointer to them; hint: git lfs pull", file);
  const auto length = load_fixed<std::uint64_t>(reinterpret_cast<const char*>(bytes.data()));
  if (length > kMostHeader)
    fail(Failure::model, "{}@0: header length: expected at most {}, got {}; hint: is it a safetensors file?", file,
         kMostHeader, length);
  if (length > bytes.size() - 8)
    fail(Failure::model,
         "{}@0: header length: expected at most {}, which is what follows, got {}; hint: is it cut short?", file,
         bytes.size() - 8, length);
  return {reinterpret_cast<const char*>(bytes.data()) + 8, length};
}

MappedFile open_file(const std::filesystem::path& file) {
  refuse_directory(file, "tensors", Failure::model);
  return MappedFile(file);
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::filesystem::path& file) : path_(file), file_(open_file(file)) {
  const std::string name = file.string();
  const std::string_view header = header_text(file_.bytes(), name);
  const auto data = file_.bytes().subspan(8 + header.size());
  std::vector<SafetensorsHeaderEntry> parsed = parse_safetensors_header(header, name);
  std::ranges::sort(parsed, {}, [](const auto& entry) { return std::pair(entry.begin, entry.end); });
  std::uint64_t expected = 0;
  for (SafetensorsHeaderEntry& entry : parsed) {
    if (entry.begin != expected)
      fail(Failure::model,
           "{}: tensor \"{}\": data_offsets: expected to begin at {}, got {}; hint: tensors may "
           "neither overlap nor leave holes",
           name, one_line(entry.name), expected, entry.begin);
    if (entry.end > data.size())
      fail(Failure::model,
           "{}: tensor \"{}\": data_offsets: expected to end by {}, where the file does, got {}; hint: "
           "is it cut short?",
           name, one_line(entry.name), data.size(), entry.end);
    expected = entry.end;
    index_[entry.name] = entries_.size();
    entries_.push_back({.name = std::move(entry.name),
                        .dtype_name = std::string(entry.type->name),
                        .dims = std::move(entry.dims),
                        .bytes = data.subspan(entry.begin, entry.end - entry.begin)});
  }
  if (expected != data.size())
    fail(Failure::model, "{}@{}: expected the end of the file, as the last tensor ends here, got {} more bytes", name,
         8 + header.size() + expected, data.size() - expected);
}

const SafetensorsEntry* SafetensorsFile::find(const std::string& name) const {
  const auto it = index_.find(name);
  return it == index_.end() ? nullptr : &entries_[it->second];
}

std::map<std::string, std::uint32_t> write_safetensors(FileWriter& out, std::vector<TensorSource> tensors) {
  std::ranges::sort(tensors, {},
                    [](const TensorSource& tensor) { return std::pair(tensor.type, std::string_view(tensor.name)); });
  nlohmann::ordered_json header;
  header["__metadata__"] = {{"format", "pt"}};
  std::uint64_t offset = 0;
  for (const TensorSource& tensor : tensors) {
    check(!header.contains(tensor.name), "safetensors: \"{}\" is to be written twice", tensor.name);
    header[tensor.name] = {
        {"dtype", tensor.type->name}, {"shape", tensor.dims}, {"data_offsets", {offset, offset + tensor.bytes}}};
    offset += tensor.bytes;
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  const std::uint64_t length = text.size();
  out.write(std::as_bytes(std::span(&length, 1)));
  out.write(text);

  std::map<std::string, std::uint32_t> checksums;
  for (const TensorSource& tensor : tensors)
    checksums[tensor.name] = read_in_pieces(tensor, [&](std::span<const std::byte> piece) { out.write(piece); });
  return checksums;
}

}  // namespace bertrand::io
