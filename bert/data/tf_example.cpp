#include "bert/data/tf_example.h"

#include <cstring>

#include "io/error.h"

namespace bertrand::data {
namespace {

// Field numbers of tensorflow/core/example/{example,feature}.proto.
constexpr int kExampleFeatures = 1;
constexpr int kFeaturesEntry = 1;
constexpr int kEntryName = 1;
constexpr int kEntryFeature = 2;
constexpr int kBytesList = 1;
constexpr int kFloatList = 2;
constexpr int kInt64List = 3;
constexpr int kListValue = 1;

enum WireType { kVarint = 0, kFixed64 = 1, kDelimited = 2, kFixed32 = 5 };

constexpr std::size_t kMaxVarintBytes = 10;
constexpr std::uint64_t kMaxField = (1 << 29) - 1;

/// Reads one message of protobuf's wire format. `place` begins every error.
class WireReader {
 public:
  WireReader(std::string_view message, std::string_view place) : rest_(message), place_(place) {}

  bool at_end() const { return rest_.empty(); }

  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < kMaxVarintBytes; ++i) {
      if (i == rest_.size()) fail(Failure::input, "{}: example: expected a number, got the end of the message", place_);
      const auto byte = static_cast<unsigned char>(rest_[i]);
      value |= static_cast<std::uint64_t>(byte & 0x7F) << (7 * i);
      if (byte < 0x80) {
        rest_.remove_prefix(i + 1);
        return value;
      }
    }
    fail(Failure::input, "{}: example: expected a number of at most {} bytes, got a longer one", place_,
         kMaxVarintBytes);
  }

  std::string_view fixed(std::size_t size) {
    if (size > rest_.size()) {
      fail(Failure::input, "{}: example: expected {} bytes, got {} to the end of the message", place_, size,
           rest_.size());
    }
    const std::string_view bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return bytes;
  }

  std::string_view delimited() { return fixed(varint()); }

  struct Tag {
    int field;
    int wire_type;
  };
  Tag tag() {
    const std::uint64_t value = varint();
    if (value >> 3 == 0 || value >> 3 > kMaxField) {
      fail(Failure::input, "{}: example: expected a field number from 1 to {}, got {}", place_, kMaxField, value >> 3);
    }
    return {static_cast<int>(value >> 3), static_cast<int>(value & 7)};
  }

  void skip(int wire_type) {
    switch (wire_type) {
      case kVarint: varint(); return;
      case kFixed64: fixed(8); return;
      case kDelimited: delimited(); return;
      case kFixed32: fixed(4); return;
      default: fail(Failure::input, "{}: example: expected a wire type 0, 1, 2 or 5, got {}", place_, wire_type);
    }
  }

  std::string_view place() const { return place_; }

 private:
  std::string_view rest_;
  std::string_view place_;
};

/// Calls `field(number, wire_type, reader)` for every field of a message; a field it returns false for is skipped.
template <class OnField>
void for_each_field(WireReader reader, OnField on_field) {
  while (!reader.at_end()) {
    const WireReader::Tag tag = reader.tag();
    if (!on_field(tag.field, tag.wire_type, reader)) reader.skip(tag.wire_type);
  }
}

float to_float(std::string_view bytes) {
  float value;
  std::memcpy(&value, bytes.data(), 4);
  return value;
}

void parse_list(WireReader list, std::vector<std::string>& values) {
  for_each_field(list, [&](int field, int wire_type, WireReader& reader) {
    if (field != kListValue || wire_type != kDelimited) return false;
    values.emplace_back(reader.delimited());
    return true;
  });
}

void parse_list(WireReader list, std::vector<float>& values) {
  for_each_field(list, [&](int field, int wire_type, WireReader& reader) {
    if (field != kListValue || (wire_type != kFixed32 && wire_type != kDelimited)) return false;
    const std::string_view bytes = wire_type == kFixed32 ? reader.fixed(4) : reader.delimited();
    if (bytes.size() % 4 != 0) {
      fail(Failure::input, "{}: example: expected floats of 4 bytes, got {} bytes", reader.place(), bytes.size());
    }
    for (std::size_t i = 0; i < bytes.size(); i += 4) values.push_back(to_float(bytes.substr(i)));
    return true;
  });
}

void parse_list(WireReader list, std::vector<std::int64_t>& values) {
  for_each_field(list, [&](int field, int wire_type, WireReader& reader) {
    if (field != kListValue || (wire_type != kVarint && wire_type != kDelimited)) return false;
    if (wire_type == kVarint) {
      values.push_back(static_cast<std::int64_t>(reader.varint()));
      return true;
    }
    WireReader packed(reader.delimited(), reader.place());
    while (!packed.at_end()) values.push_back(static_cast<std::int64_t>(packed.varint()));
    return true;
  });
}

template <class T>
void parse_into(WireReader list, Feature& feature) {
  if (!std::holds_alternative<std::vector<T>>(feature)) feature = std::vector<T>{};
  parse_list(list, std::get<std::vector<T>>(feature));
}

Feature parse_feature(WireReader message) {
  Feature feature;
  for_each_field(message, [&](int field, int wire_type, WireReader& reader) {
    if (wire_type != kDelimited || field < kBytesList || field > kInt64List) return false;
    const WireReader list(reader.delimited(), reader.place());
    if (field == kBytesList) parse_into<std::string>(list, feature);
    if (field == kFloatList) parse_into<float>(list, feature);
    if (field == kInt64List) parse_into<std::int64_t>(list, feature);
    return true;
  });
  return feature;
}

void parse_entry(WireReader message, Features& features) {
  std::string name;
  Feature feature;
  for_each_field(message, [&](int field, int wire_type, WireReader& reader) {
    if (wire_type != kDelimited || (field != kEntryName && field != kEntryFeature)) return false;
    const std::string_view bytes = reader.delimited();
    if (field == kEntryName) name = bytes;
    if (field == kEntryFeature) feature = parse_feature(WireReader(bytes, reader.place()));
    return true;
  });
  features.insert_or_assign(std::move(name), std::move(feature));
}

std::size_t varint_size(std::uint64_t value) {
  std::size_t size = 1;
  for (; value >= 0x80; value >>= 7) ++size;
  return size;
}

void append_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

void append_tag(std::string& out, int field) {
  append_varint(out, static_cast<std::uint64_t>(field << 3 | kDelimited));
}

void append_delimited(std::string& out, int field, std::string_view bytes) {
  append_tag(out, field);
  append_varint(out, bytes.size());
  out.append(bytes);
}

std::size_t delimited_size(std::size_t size) { return 1 + varint_size(size) + size; }

}  // namespace

Features parse_example(std::string_view message, std::string_view place) {
  Features features;
  for_each_field(WireReader(message, place), [&](int field, int wire_type, WireReader& reader) {
    if (field != kExampleFeatures || wire_type != kDelimited) return false;
    for_each_field(WireReader(reader.delimited(), place), [&](int inner, int inner_type, WireReader& entries) {
      if (inner != kFeaturesEntry || inner_type != kDelimited) return false;
      parse_entry(WireReader(entries.delimited(), place), features);
      return true;
    });
    return true;
  });
  return features;
}

std::string serialize_example(const Features& features) {
  ExampleBuilder builder;
  for (const auto& [name, feature] : features) {
    if (const auto* bytes = std::get_if<std::vector<std::string>>(&feature)) builder.add(name, std::span(*bytes));
    if (const auto* floats = std::get_if<std::vector<float>>(&feature)) builder.add(name, std::span(*floats));
    if (const auto* ints = std::get_if<std::vector<std::int64_t>>(&feature)) builder.add(name, std::span(*ints));
  }
  std::string message;
  builder.append_to(message);
  return message;
}

// list_ holds the packed values: wraps them as Int64List or FloatList.value, in Feature, in a map entry.
void ExampleBuilder::add_list(std::string_view name, int kind) {
  const bool is_packed = kind != kBytesList;  // strings cannot be packed: list_ is the BytesList itself
  const std::size_t list_size = is_packed && !list_.empty() ? delimited_size(list_.size()) : list_.size();
  const std::size_t feature_size = delimited_size(list_size);
  const std::size_t entry_size = delimited_size(name.size()) + delimited_size(feature_size);
  append_tag(features_, kFeaturesEntry);
  append_varint(features_, entry_size);
  append_delimited(features_, kEntryName, name);
  append_tag(features_, kEntryFeature);
  append_varint(features_, feature_size);
  append_tag(features_, kind);
  append_varint(features_, list_size);
  if (is_packed && !list_.empty()) {
    append_delimited(features_, kListValue, list_);
  } else {
    features_.append(list_);
  }
}

void ExampleBuilder::add(std::string_view name, std::span<const std::int32_t> values) {
  list_.clear();
  // A negative int32 is encoded as the int64 of the same value.
  for (const std::int32_t value : values) append_varint(list_, static_cast<std::uint64_t>(std::int64_t{value}));
  add_list(name, kInt64List);
}

void ExampleBuilder::add(std::string_view name, std::span<const std::int64_t> values) {
  list_.clear();
  for (const std::int64_t value : values) append_varint(list_, static_cast<std::uint64_t>(value));
  add_list(name, kInt64List);
}

void ExampleBuilder::add(std::string_view name, std::span<const float> values) {
  list_.assign(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  add_list(name, kFloatList);
}

void ExampleBuilder::add(std::string_view name, std::span<const std::string> values) {
  list_.clear();
  for (const std::string& value : values) append_delimited(list_, kListValue, value);
  add_list(name, kBytesList);
}

void ExampleBuilder::append_to(std::string& out) const { append_delimited(out, kExampleFeatures, features_); }

}  // namespace bertrand::data
