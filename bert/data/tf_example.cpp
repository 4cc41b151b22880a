// tf.train.Example over protobuf's wire format.
#include "bert/data/tf_example.h"

#include <fmt/format.h>

#include "io/protobuf.h"

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

using io::ProtoReader;
using io::WireType;

void parse_list(ProtoReader list, std::vector<std::string>& values) {
  while (list.next())
    if (list.is(kListValue, WireType::bytes)) values.emplace_back(list.bytes());
}

void parse_list(ProtoReader list, std::vector<float>& values) {
  while (list.next())
    if (list.has_floats(kListValue)) list.each_float([&](float value) { values.push_back(value); });
}

void parse_list(ProtoReader list, std::vector<std::int64_t>& values) {
  while (list.next())
    if (list.has_varints(kListValue))
      list.each_varint([&](std::uint64_t value) { values.push_back(static_cast<std::int64_t>(value)); });
}

template <class T>
void parse_into(ProtoReader list, Feature& feature) {
  if (!std::holds_alternative<std::vector<T>>(feature)) feature = std::vector<T>{};
  parse_list(list, std::get<std::vector<T>>(feature));
}

Feature parse_feature(ProtoReader message) {
  Feature feature;
  while (message.next()) {
    if (message.is(kBytesList, WireType::bytes)) parse_into<std::string>(message.message(), feature);
    else if (message.is(kFloatList, WireType::bytes)) parse_into<float>(message.message(), feature);
    else if (message.is(kInt64List, WireType::bytes)) parse_into<std::int64_t>(message.message(), feature);
  }
  return feature;
}

void parse_entry(ProtoReader message, Features& features) {
  std::string name;
  Feature feature;
  while (message.next()) {
    if (message.is(kEntryName, WireType::bytes)) name = message.bytes();
    else if (message.is(kEntryFeature, WireType::bytes)) feature = parse_feature(message.message());
  }
  features.insert_or_assign(std::move(name), std::move(feature));
}

}  // namespace

Features parse_example(std::string_view message, std::string_view place) {
  Features features;
  const std::string where = fmt::format("{}: example", place);
  ProtoReader example(message, where, Failure::input);
  while (example.next()) {
    if (!example.is(kExampleFeatures, WireType::bytes)) continue;
    ProtoReader entries = example.message();
    while (entries.next())
      if (entries.is(kFeaturesEntry, WireType::bytes)) parse_entry(entries.message(), features);
  }
  return features;
}

// list_ holds the packed values: wraps them as Int64List or FloatList.value, in Feature, in a map entry.
void ExampleBuilder::add_list(std::string_view name, int kind) {
  const bool is_packed = kind != kBytesList;  // strings cannot be packed: list_ is the BytesList itself
  const std::size_t list_size =
      is_packed && !list_.empty() ? io::bytes_field_size(kListValue, list_.size()) : list_.size();
  const std::size_t feature_size = io::bytes_field_size(kind, list_size);
  io::append_length(features_, kFeaturesEntry,
                    io::bytes_field_size(kEntryName, name.size()) + io::bytes_field_size(kEntryFeature, feature_size));
  io::append_bytes(features_, kEntryName, name);
  io::append_length(features_, kEntryFeature, feature_size);
  io::append_length(features_, kind, list_size);
  if (is_packed && !list_.empty()) io::append_bytes(features_, kListValue, list_);
  else features_.append(list_);
}

void ExampleBuilder::add(std::string_view name, std::span<const std::int32_t> values) {
  list_.clear();
  // A negative int32 is encoded as the int64 of the same value.
  for (const std::int32_t value : values) io::append_varint(list_, static_cast<std::uint64_t>(std::int64_t{value}));
  add_list(name, kInt64List);
}

void ExampleBuilder::add(std::string_view name, std::span<const std::int64_t> values) {
  list_.clear();
  for (const std::int64_t value : values) io::append_varint(list_, static_cast<std::uint64_t>(value));
  add_list(name, kInt64List);
}

void ExampleBuilder::add(std::string_view name, std::span<const float> values) {
  list_.assign(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  add_list(name, kFloatList);
}

void ExampleBuilder::add(std::string_view name, std::span<const std::string> values) {
  list_.clear();
  for (const std::string& value : values) io::append_bytes(list_, kListValue, value);
  add_list(name, kBytesList);
}

void ExampleBuilder::append_to(std::string& out) const { io::append_bytes(out, kExampleFeatures, features_); }

}  // namespace bertrand::data
