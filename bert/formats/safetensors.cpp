#include "bert/formats/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "bert/formats/crc32c.h"

namespace bertrand::formats {
namespace {

using Json = nlohmann::ordered_json;
static_assert(std::endian::native == std::endian::little, "safetensors is little-endian, and so is every machine this runs on");

constexpr std::uint64_t kMostHeader = 100'000'000;
constexpr std::size_t kMostTensors = 100'000, kLongestName = 1024;

struct KnownType {
  const char* name;
  unsigned bits;
  std::optional<DType> dtype;
};
const KnownType kTypes[] = {
    {"F64", 64, DType::f64}, {"F32", 32, DType::f32}, {"F16", 16, DType::f16}, {"BF16", 16, DType::bf16}, {"I64", 64, DType::i64},
    {"I32", 32, DType::i32}, {"U8", 8, DType::u8},    {"BOOL", 8, {}},         {"I8", 8, {}},             {"I16", 16, {}},
    {"U16", 16, {}},         {"U32", 32, {}},         {"U64", 64, {}},         {"C64", 64, {}},           {"F8_E5M2", 8, {}},
    {"F8_E4M3", 8, {}},      {"F8_E8M0", 8, {}},      {"F8_E4M3FNUZ", 8, {}},  {"F8_E5M2FNUZ", 8, {}},    {"F4", 4, {}},
    {"F6_E2M3", 6, {}},      {"F6_E3M2", 6, {}}};

const KnownType* known_type(const std::string& name) {
  for (const KnownType& type : kTypes)
    if (name == type.name) return &type;
  return nullptr;
}
const char* name_in_file(DType dtype) {
  for (const KnownType& type : kTypes)
    if (type.dtype == dtype) return type.name;
  fail(Failure::bug, "safetensors: {} has no name", name_of(dtype));
}

/// The header as JSON. Keys that come twice are refused: parsers disagree on which counts.
Json parse_header(const std::string& file, std::string_view text) {
  std::vector<std::set<std::string>> open;
  const Json::parser_callback_t no_duplicates = [&](int, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) open.emplace_back();
    if (event == Json::parse_event_t::object_end) open.pop_back();
    if (event == Json::parse_event_t::key && !open.back().insert(parsed.get<std::string>()).second)
      fail(Failure::model, "{}@8: header: the key \"{}\" comes twice", file, parsed.get<std::string>());
    return true;
  };
  if (text.empty() || text.front() != '{') fail(Failure::model, "{}@8: header: expected \"{{\", got something else", file);
  // The parser recurses into arrays and objects, of which a real header nests three.
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (quoted) {
      if (text[i] == '\\') ++i;
      else if (text[i] == '"') quoted = false;
      continue;
    }
    if (text[i] == '"') quoted = true;
    if ((text[i] == '{' || text[i] == '[') && ++depth > 4) fail(Failure::model, "{}@{}: header: nested deeper than a tensor's entry", file, 8 + i);
    if (text[i] == '}' || text[i] == ']') --depth;
  }
  try {
    return Json::parse(text, no_duplicates);
  } catch (const Json::exception& e) {
    fail(Failure::model, "{}@8: header: expected JSON, got an error ({})", file, e.what());
  }
}

std::uint64_t whole_number(const Json& value, const std::string& file, const std::string& name, const char* what) {
  if (!value.is_number_unsigned()) fail(Failure::model, "{}: tensor \"{}\": {}: expected whole numbers, got {}", file, name, what, value.dump());
  return value.get<std::uint64_t>();
}

struct Range {
  std::uint64_t begin, end;
};

/// One entry of the header, its bytes not yet found.
std::pair<SafetensorsEntry, Range> parse_entry(const std::string& file, const std::string& name, const Json& value) {
  if (!value.is_object()) fail(Failure::model, "{}: tensor \"{}\": expected an object, got {}", file, name, value.dump());
  if (name.size() > kLongestName || name.find('\0') != std::string::npos) fail(Failure::model, "{}: a tensor's name is longer than {} bytes or holds a NUL", file, kLongestName);
  for (const auto& [key, ignored] : value.items())
    if (key != "dtype" && key != "shape" && key != "data_offsets") fail(Failure::model, "{}: tensor \"{}\": unknown field \"{}\"", file, name, key);
  for (const char* key : {"dtype", "shape", "data_offsets"})
    if (!value.contains(key)) fail(Failure::model, "{}: tensor \"{}\": expected a field \"{}\", got none", file, name, key);
  const Json &dtype = value["dtype"], &shape = value["shape"], &offsets = value["data_offsets"];
  const KnownType* type = dtype.is_string() ? known_type(dtype.get<std::string>()) : nullptr;
  if (!type) fail(Failure::model, "{}: tensor \"{}\": dtype: expected a known type such as F32, got {}", file, name, dtype.dump());
  if (!shape.is_array() || !offsets.is_array() || offsets.size() != 2)
    fail(Failure::model, "{}: tensor \"{}\": expected a shape and two data_offsets, got {} and {}", file, name, shape.dump(), offsets.dump());

  SafetensorsEntry entry{.name = name, .dtype_name = type->name, .dtype = type->dtype, .dims = {}, .bytes = {}};
  std::uint64_t bits = type->bits;
  for (const Json& dim : shape) {
    const std::uint64_t d = whole_number(dim, file, name, "shape");
    if (d > (std::uint64_t{1} << 48) || __builtin_mul_overflow(bits, d, &bits)) fail(Failure::model, "{}: tensor \"{}\": shape {} is larger than any file", file, name, shape.dump());
    entry.dims.push_back(static_cast<Dim>(d));
  }
  const Range range{whole_number(offsets[0], file, name, "data_offsets"), whole_number(offsets[1], file, name, "data_offsets")};
  if (bits % 8 != 0 || range.end < range.begin || range.end - range.begin != bits / 8)
    fail(Failure::model, "{}: tensor \"{}\": {} {} needs {} bytes, got data_offsets {}", file, name, type->name, shape.dump(), bits / 8, offsets.dump());
  return {std::move(entry), range};
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::filesystem::path& file) : path_(file), file_(file) {
  const std::string name = file.string();
  const auto bytes = file_.bytes();
  if (bytes.size() < 8) fail(Failure::model, "{}@0: expected the 8 bytes of a header length, got a file of {}", name, bytes.size());
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  if (length > kMostHeader) fail(Failure::model, "{}@0: header length: expected at most {}, got {}; is it a safetensors file?", name, kMostHeader, length);
  if (length > bytes.size() - 8) fail(Failure::model, "{}@0: header length: {} bytes, but the file has {} after it", name, length, bytes.size() - 8);
  const Json header = parse_header(name, {reinterpret_cast<const char*>(bytes.data()) + 8, length});
  if (header.size() > kMostTensors) fail(Failure::model, "{}@8: header: expected at most {} tensors, got {}", name, kMostTensors, header.size());

  std::vector<std::pair<SafetensorsEntry, Range>> parsed;
  for (const auto& [key, value] : header.items()) {
    if (key != "__metadata__") {
      parsed.push_back(parse_entry(name, key, value));
      continue;
    }
    const bool strings = value.is_object() && std::all_of(value.begin(), value.end(), [](const Json& v) { return v.is_string(); });
    if (!strings) fail(Failure::model, "{}: __metadata__: expected strings by name, got {}", name, value.dump());
  }
  std::sort(parsed.begin(), parsed.end(), [](const auto& a, const auto& b) {
    return std::pair(a.second.begin, a.second.end) < std::pair(b.second.begin, b.second.end);
  });
  const auto data = bytes.subspan(8 + length);
  std::uint64_t expected = 0;
  for (auto& [entry, range] : parsed) {
    if (range.begin != expected)
      fail(Failure::model, "{}: tensor \"{}\": data_offsets: expected to begin at {}, got {}; tensors may neither overlap nor leave holes", name, entry.name, expected, range.begin);
    if (range.end > data.size()) fail(Failure::model, "{}: tensor \"{}\": ends at byte {} of the data, but the file has {}; is it cut short?", name, entry.name, range.end, data.size());
    entry.bytes = data.subspan(range.begin, range.end - range.begin);
    expected = range.end;
    index_[entry.name] = entries_.size();
    entries_.push_back(std::move(entry));
  }
  if (expected != data.size()) fail(Failure::model, "{}: the tensors end at byte {} of the data, but the file has {}", name, expected, data.size());
}

const SafetensorsEntry* SafetensorsFile::find(const std::string& name) const {
  const auto it = index_.find(name);
  return it == index_.end() ? nullptr : &entries_[it->second];
}

std::map<std::string, std::uint32_t> write_safetensors(FileWriter& out, std::vector<NamedTensor> tensors) {
  std::sort(tensors.begin(), tensors.end(), [](const NamedTensor& a, const NamedTensor& b) {
    const auto width = [](const NamedTensor& t) { return size_of(t.value.dtype()); };
    return width(a) != width(b) ? width(a) > width(b) : a.name < b.name;
  });
  Json header;
  header["__metadata__"] = {{"format", "pt"}};
  std::size_t offset = 0;
  for (const auto& [name, value] : tensors) {
    header[name] = {{"dtype", name_in_file(value.dtype())}, {"shape", value.shape().dims()}, {"data_offsets", {offset, offset + value.bytes()}}};
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
    fail(Failure::model, "{}: tensor \"{}\": dtype: expected F64, F32, F16 or BF16, got {}", file.string(), entry.name, entry.dtype_name);
  constexpr Dim kChunk = Dim{1} << 20;
  for (Dim first = 0; first < out.elements(); first += kChunk) {
    const Shape part{std::min(kChunk, out.elements() - first)};
    const Tensor staged(part, *entry.dtype, out.backend());
    out.backend().upload(entry.bytes.data() + static_cast<std::size_t>(first) * size_of(*entry.dtype), staged);
    ops::copy_into(staged, out.window(first, part));
  }
}

}  // namespace bertrand::formats
