#include "io/safetensors_header.h"

#include <nlohmann/json.hpp>
#include <set>

#include "io/error.h"
#include "io/json.h"
#include "io/say.h"

namespace bertrand::io {
namespace {

constexpr SafetensorsType kTypes[] = {
    {"U64", 64},        {"I64", 64},    {"F64", 64},    {"C64", 64},    {"F32", 32}, {"U32", 32},
    {"I32", 32},        {"BF16", 16},   {"F16", 16},    {"U16", 16},    {"I16", 16}, {"F8_E5M2FNUZ", 8},
    {"F8_E4M3FNUZ", 8}, {"F8_E8M0", 8}, {"F8_E4M3", 8}, {"F8_E5M2", 8}, {"I8", 8},   {"U8", 8},
    {"F6_E3M2", 6},     {"F6_E2M3", 6}, {"F4", 4},      {"BOOL", 8}};

constexpr std::size_t kMostTensors = 100'000, kMostMetadata = 10'000, kLongestName = 1024, kMostDims = 64;
constexpr std::uint64_t kLargestDim = std::uint64_t{1} << 48;

/// What the parser calls for each piece of JSON. A header nests no deeper than a tensor's shape, so the place is one
/// name.
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit HeaderReader(const std::string& file) : file_(file) {}
  std::vector<SafetensorsHeaderEntry> take() { return std::move(entries_); }

  bool start_object(std::size_t) override {
    if (place_ == Place::outside) {
      place_ = Place::header;
    } else if (place_ == Place::tensor_or_metadata) {
      place_ = key_ == kMetadata ? Place::metadata : Place::tensor;
      fields_.clear();
    } else {
      unexpected("an object");
    }
    return true;
  }

  bool key(std::string& name) override {
    if (place_ == Place::metadata && (fields_.size() == kMostMetadata || name.size() > kLongestName))
      refuse("expected at most {} keys of at most {} bytes, got more", kMostMetadata, kLongestName);
    std::set<std::string>& seen = place_ == Place::header ? names_ : fields_;
    if (!seen.insert(name).second) refuse("the key {} comes twice", shown(name));
    key_ = name;
    if (place_ == Place::header) {
      if (name.size() > kLongestName || name.find('\0') != std::string::npos)
        fail(Failure::model, "{}@8: header: a tensor's name: expected at most {} bytes and no NUL, got {} bytes", file_,
             kLongestName, name.size());
      place_ = Place::tensor_or_metadata;
      if (name == kMetadata) return true;
      if (entries_.size() == kMostTensors)
        fail(Failure::model, "{}@8: header: expected at most {} tensors, got more", file_, kMostTensors);
      entries_.push_back({.name = name});
    } else if (place_ == Place::tensor && name != "dtype" && name != "shape" && name != "data_offsets") {
      refuse("expected the fields dtype, shape and data_offsets, got {}", shown(name));
    }
    return true;
  }

  bool end_object() override {
    if (place_ == Place::tensor) {
      for (const char* field : {"dtype", "shape", "data_offsets"})
        if (!fields_.contains(field)) refuse("expected a field \"{}\", got none", field);
      check_size(entries_.back());
    }
    place_ = place_ == Place::header ? Place::outside : Place::header;
    return true;
  }

  bool start_array(std::size_t) override {
    if (place_ != Place::tensor || key_ == "dtype") unexpected("a list");
    place_ = key_ == "shape" ? Place::shape : Place::offsets;
    offsets_ = 0;
    return true;
  }
  bool end_array() override {
    if (place_ == Place::offsets && offsets_ != 2) refuse("data_offsets: expected 2 numbers, got {}", offsets_);
    place_ = Place::tensor;
    return true;
  }

  bool number_unsigned(std::uint64_t value) override {
    SafetensorsHeaderEntry* entry = entries_.empty() ? nullptr : &entries_.back();
    if (place_ == Place::shape) {
      if (value > kLargestDim) refuse("shape: expected dimensions of at most {}, got {}", kLargestDim, value);
      if (entry->dims.size() == kMostDims) refuse("shape: expected at most {} dimensions, got more", kMostDims);
      entry->dims.push_back(static_cast<std::int64_t>(value));
    } else if (place_ == Place::offsets) {
      if (++offsets_ > 2) refuse("data_offsets: expected 2 numbers, got more");
      (offsets_ == 1 ? entry->begin : entry->end) = value;
    } else {
      unexpected(fmt::format("{}", value));
    }
    return true;
  }

  bool string(std::string& value) override {
    if (place_ == Place::metadata) return true;
    if (place_ != Place::tensor || key_ != "dtype") unexpected(shown(value));
    entries_.back().type = find_safetensors_type(value);
    if (!entries_.back().type) refuse("dtype: expected a known type such as F32, got {}", shown(value));
    return true;
  }

  bool null() override { return unexpected("null"); }
  bool boolean(bool value) override { return unexpected(value ? "true" : "false"); }
  bool number_integer(std::int64_t value) override { return unexpected(fmt::format("{}", value)); }
  bool number_float(double, const std::string& text) override { return unexpected(text.substr(0, 40)); }
  bool binary(nlohmann::json::binary_t&) override { return unexpected("binary"); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) override {
    fail(Failure::model, "{}@{}: header: expected JSON, got a syntax error or invalid UTF-8", file_, 7 + position);
  }

 private:
  enum class Place { outside, header, tensor_or_metadata, metadata, tensor, shape, offsets };
  static constexpr const char* kMetadata = "__metadata__";

  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> message, Args&&... args) const {
    const std::string what = fmt::format(message, std::forward<Args>(args)...);
    if (place_ == Place::header || place_ == Place::outside) fail(Failure::model, "{}@8: header: {}", file_, what);
    if (fields_of_metadata()) fail(Failure::model, "{}: {}: {}", file_, kMetadata, what);
    fail(Failure::model, "{}: tensor \"{}\": {}", file_, one_line(entries_.back().name), what);
  }
  bool fields_of_metadata() const {
    return place_ == Place::metadata || (place_ == Place::tensor_or_metadata && key_ == kMetadata);
  }

  bool unexpected(const std::string& got) const {
    switch (place_) {
      case Place::outside:
      case Place::header: refuse("expected an object of tensors, got {}", got);
      case Place::tensor_or_metadata: refuse("expected an object, got {}", got);
      case Place::metadata: refuse("expected strings, got {}", got);
      case Place::tensor: refuse("{}: expected {}, got {}", key_, key_ == "dtype" ? "a string" : "a list", got);
      case Place::shape: refuse("shape: expected whole numbers, got {}", got);
      case Place::offsets: break;
    }
    refuse("data_offsets: expected whole numbers, got {}", got);
  }

  void check_size(const SafetensorsHeaderEntry& entry) const {
    std::uint64_t bits = entry.type->bits;
    bool overflow = false;
    for (const std::int64_t dim : entry.dims)
      overflow = __builtin_mul_overflow(bits, static_cast<std::uint64_t>(dim), &bits) || overflow;
    if (overflow)
      refuse("shape: expected fewer than 2^64 bits, got [{}] of {}", fmt::join(entry.dims, ","), entry.type->name);
    if (bits % 8 != 0)
      refuse("shape: expected whole bytes, got [{}] of {}", fmt::join(entry.dims, ","), entry.type->name);
    if (entry.end < entry.begin || entry.end - entry.begin != bits / 8)
      refuse("data_offsets: expected [{},{}] for [{}] of {}, got [{},{}]", entry.begin, entry.begin + bits / 8,
             fmt::join(entry.dims, ","), entry.type->name, entry.begin, entry.end);
  }

  const std::string& file_;
  std::vector<SafetensorsHeaderEntry> entries_;
  std::set<std::string> names_,
      fields_;  // keys seen in the header and in its innermost object; no hash can be made to collide
  std::string key_;
  Place place_ = Place::outside;
  int offsets_ = 0;
};

}  // namespace

const SafetensorsType* find_safetensors_type(std::string_view name) {
  for (const SafetensorsType& type : kTypes)
    if (type.name == name) return &type;
  return nullptr;
}

std::vector<SafetensorsHeaderEntry> parse_safetensors_header(std::string_view text, const std::string& file) {
  if (text.empty() || text.front() != '{') fail(Failure::model, "{}@8: header: expected it to begin with \"{{\"", file);
  // The parser would take a NUL for the end of its input.
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos)
    fail(Failure::model, "{}@{}: header: expected JSON, got a NUL", file, 8 + nul);
  HeaderReader reader(file);
  nlohmann::json::sax_parse(text, &reader);
  return reader.take();
}

}  // namespace bertrand::io
