#include "bert/formats/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>

#include "bert/formats/crc32c.h"
#include "bert/formats/input_files.h"
#include "bert/formats/safetensors_header.h"

namespace bertrand::formats {
namespace {

static_assert(std::endian::native == std::endian::little,
              "safetensors is little-endian, and so is every machine this runs on");

constexpr std::uint64_t kMostHeader = 100'000'000;

/// The header's text. Throws where its length cannot be.
std::string_view header_text(std::span<const std::byte> bytes, const std::string& file) {
  if (bytes.size() < 8)
    fail(Failure::model, "{}@0: header length: expected 8 bytes, got a file of {}", file, bytes.size());
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
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
  std::sort(parsed.begin(), parsed.end(),
            [](const auto& a, const auto& b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
  std::uint64_t expected = 0;
  for (SafetensorsHeaderEntry& entry : parsed) {
    if (entry.begin != expected)
      fail(Failure::model,
           "{}: tensor \"{}\": data_offsets: expected to begin at {}, got {}; hint: tensors may "
           "neither overlap nor leave holes",
           name, entry.name, expected, entry.begin);
    if (entry.end > data.size())
      fail(Failure::model,
           "{}: tensor \"{}\": data_offsets: expected to end by {}, where the file does, got {}; hint: "
           "is it cut short?",
           name, entry.name, data.size(), entry.end);
    expected = entry.end;
    index_[entry.name] = entries_.size();
    entries_.push_back({.name = std::move(entry.name),
                        .dtype_name = std::string(entry.type->name),
                        .dtype = entry.type->dtype,
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

std::map<std::string, std::uint32_t> write_safetensors(FileWriter& out, std::vector<NamedTensor> tensors) {
  std::sort(tensors.begin(), tensors.end(), [](const NamedTensor& a, const NamedTensor& b) {
    const SafetensorsType &type_a = safetensors_type_of(a.value.dtype()),
                          &type_b = safetensors_type_of(b.value.dtype());
    return &type_a != &type_b ? &type_a < &type_b : a.name < b.name;
  });
  nlohmann::ordered_json header;
  header["__metadata__"] = {{"format", "pt"}};
  std::size_t offset = 0;
  for (const auto& [name, value] : tensors) {
    check(!header.contains(name), "safetensors: \"{}\" is to be written twice", name);
    header[name] = {{"dtype", safetensors_type_of(value.dtype()).name},
                    {"shape", value.shape().dims()},
                    {"data_offsets", {offset, offset + value.bytes()}}};
    offset += value.bytes();
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  const std::uint64_t length = text.size();
  out.write(std::as_bytes(std::span(&length, 1)));
  out.write(text);

  constexpr Dim kChunk = Dim{1} << 18;  // elements brought to the host at a time
  std::map<std::string, std::uint32_t> checksums;
  std::vector<std::byte> host;
  for (const auto& [name, value] : tensors) {
    std::uint32_t crc = 0;
    for (Dim first = 0; first < value.elements(); first += kChunk) {
      const Tensor part = value.window(first, {std::min(kChunk, value.elements() - first)});
      host.resize(part.bytes());
      part.backend().download(part, host.data());
      crc = crc32c(host, crc);
      out.write(host);
    }
    checksums[name] = crc;
  }
  return checksums;
}

void load_entry(const SafetensorsEntry& entry, const std::filesystem::path& file, const Tensor& out) {
  if (!entry.dtype || !is_floating(*entry.dtype))
    fail(Failure::model, "{}: tensor \"{}\": dtype: expected F64, F32, F16 or BF16, got {}", file.string(), entry.name,
         entry.dtype_name);
  constexpr Dim kChunk = Dim{1} << 20;
  for (Dim first = 0; first < out.elements(); first += kChunk) {
    const Shape part{std::min(kChunk, out.elements() - first)};
    const Tensor staged(part, *entry.dtype, out.backend());
    out.backend().upload(entry.bytes.data() + static_cast<std::size_t>(first) * size_of(*entry.dtype), staged);
    ops::copy_into(staged, out.window(first, part));
  }
}

}  // namespace bertrand::formats
