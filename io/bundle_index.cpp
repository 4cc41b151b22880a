// The index of a checkpoint: protocol buffers in a table.
#include <fmt/ranges.h>

#include <algorithm>

#include "io/bundle_types.h"
#include "io/error.h"
#include "io/protobuf.h"
#include "io/table.h"
#include "io/tensor_bundle.h"

namespace bertrand::io {
namespace {

constexpr std::uint64_t kVersion = 1, kMostShards = 99'999, kMostDims = 254;  // as TensorFlow's

std::string header_bytes(std::uint32_t shards) {
  std::string version, header;
  append_number(version, 1, kVersion);
  append_number(header, 1, shards);
  append_bytes(header, 3, version);
  return header;
}

/// Numbers that are 0 are left out; the shape of a scalar is not.
std::string entry_bytes(const BundleEntry& entry) {
  std::string shape, bytes;
  for (const std::int64_t dim : entry.dims) {
    std::string size;
    if (dim != 0) append_number(size, 1, static_cast<std::uint64_t>(dim));
    append_bytes(shape, 2, size);
  }
  append_number(bytes, 1, static_cast<std::uint64_t>(entry.type));
  append_bytes(bytes, 2, shape);
  if (entry.shard != 0) append_number(bytes, 3, entry.shard);
  if (entry.offset != 0) append_number(bytes, 4, entry.offset);
  if (entry.size != 0) append_number(bytes, 5, entry.size);
  if (entry.crc != 0) {
    append_tag(bytes, 6, WireType::fixed32);
    append_fixed(bytes, entry.crc);
  }
  for (const std::string& slice : entry.slices) append_bytes(bytes, 7, slice);
  return bytes;
}

std::uint32_t parse_header(std::string_view message, const std::string& file) {
  const std::string place = file + ": header";
  std::uint64_t shards = 0, big_endian = 0, least_version = 0;
  ProtoReader reader(message, place, Failure::model);
  while (reader.next()) {
    if (reader.is(1, WireType::varint)) shards = reader.varint();
    else if (reader.is(2, WireType::varint)) big_endian = reader.varint();
    else if (reader.is(3, WireType::bytes))
      for (ProtoReader version = reader.message(); version.next();)
        if (version.is(2, WireType::varint)) least_version = version.varint();
  }
  if (shards < 1 || shards > kMostShards)
    fail(Failure::model, "{}: expected from 1 to {} shards, got {}", place, kMostShards, shards);
  if (big_endian != 0) fail(Failure::model, "{}: expected little-endian numbers, got big-endian ones", place);
  if (least_version > kVersion)
    fail(Failure::model, "{}: expected a version of at most {}, got {}; hint: is it newer than this program?", place,
         kVersion, least_version);
  return static_cast<std::uint32_t>(shards);
}

std::vector<std::int64_t> parse_shape(ProtoReader shape, const std::string& place) {
  std::vector<std::int64_t> dims;
  while (shape.next()) {
    if (!shape.is(2, WireType::bytes)) continue;
    std::int64_t size = 0;
    for (ProtoReader dim = shape.message(); dim.next();)
      if (dim.is(1, WireType::varint)) size = static_cast<std::int64_t>(dim.varint());
    if (size < 0) fail(Failure::model, "{}: shape: expected dimensions from 0, got {}", place, size);
    if (dims.size() == kMostDims)
      fail(Failure::model, "{}: shape: expected at most {} dimensions, got more", place, kMostDims);
    dims.push_back(size);
  }
  return dims;
}

void check_size(const BundleEntry& entry, const std::string& place) {
  const BundleType* type = find_bundle_type(entry.type);
  if (!type) fail(Failure::model, "{}: expected a type of numbers or strings, got number {}", place, entry.type);
  auto whole = static_cast<std::int64_t>(type->bytes);  // if no dimension were 0: the others are multiplied elsewhere
  bool overflow = false;
  for (const std::int64_t dim : entry.dims)
    overflow = __builtin_mul_overflow(whole, std::max<std::int64_t>(dim, 1), &whole) || overflow;
  if (overflow)
    fail(Failure::model, "{}: shape: expected fewer than 2^63 bytes, got [{}] of {}", place, fmt::join(entry.dims, ","),
         type->name);
  const std::uint64_t size = std::ranges::count(entry.dims, 0) > 0 ? 0 : static_cast<std::uint64_t>(whole);
  const bool fits = type->is_string() ? entry.size >= size : entry.size == size;
  if (entry.slices.empty() && !fits)
    fail(Failure::model, "{}: size: expected {} bytes for [{}] of {}, got {}", place, size, fmt::join(entry.dims, ","),
         type->name, entry.size);
}

BundleEntry parse_entry(const TableEntry& stored, std::uint32_t shards, const std::string& file) {
  const std::string place = fmt::format("{}: tensor \"{}\"", file, printable(stored.key));
  BundleEntry entry{.name = stored.key};
  std::uint64_t type = 0, shard = 0;
  ProtoReader reader(stored.value, place, Failure::model);
  while (reader.next()) {
    if (reader.is(1, WireType::varint)) type = reader.varint();
    else if (reader.is(2, WireType::bytes)) entry.dims = parse_shape(reader.message(), place);
    else if (reader.is(3, WireType::varint)) shard = reader.varint();
    else if (reader.is(4, WireType::varint)) entry.offset = reader.varint();
    else if (reader.is(5, WireType::varint)) entry.size = reader.varint();
    else if (reader.is(6, WireType::fixed32)) entry.crc = reader.fixed<std::uint32_t>();
    else if (reader.is(7, WireType::bytes)) entry.slices.emplace_back(reader.bytes());
  }
  entry.type = static_cast<int>(std::min<std::uint64_t>(type, 1 << 20));
  check_size(entry, place);
  if (shard >= shards) fail(Failure::model, "{}: expected a shard below {}, got {}", place, shards, shard);
  if (entry.offset > UINT64_MAX - entry.size)
    fail(Failure::model, "{}: offset: expected one that a file can have, got {}", place, entry.offset);
  entry.shard = static_cast<std::uint32_t>(shard);
  return entry;
}

void check_no_overlap(const std::vector<BundleEntry>& entries, const std::string& file) {
  std::vector<const BundleEntry*> order;
  for (const BundleEntry& entry : entries)
    if (entry.slices.empty() && entry.size > 0) order.push_back(&entry);
  std::ranges::sort(order, {}, [](const BundleEntry* e) { return std::pair(e->shard, e->offset); });
  for (std::size_t i = 1; i < order.size(); ++i) {
    const BundleEntry &before = *order[i - 1], &entry = *order[i];
    if (before.shard == entry.shard && before.offset + before.size > entry.offset)
      fail(Failure::model, "{}: tensor \"{}\": offset: expected at least {}, where \"{}\" ends, got {}", file,
           printable(entry.name), before.offset + before.size, printable(before.name), entry.offset);
  }
}

}  // namespace

std::string_view BundleEntry::type_name() const {
  const BundleType* known = find_bundle_type(type);
  return known ? known->name : "?";
}

std::string bundle_index_bytes(const BundleIndex& index) {
  std::vector<TableEntry> entries{{.key = "", .value = header_bytes(index.shards)}};
  for (const BundleEntry& entry : index.entries) entries.push_back({.key = entry.name, .value = entry_bytes(entry)});
  return table_bytes(entries);
}

BundleIndex parse_bundle_index(std::string_view bytes, const std::string& file) {
  const std::vector<TableEntry> stored = parse_table(bytes, file);
  if (stored.empty() || !stored[0].key.empty())
    fail(Failure::model, "{}: expected the header of a TensorFlow checkpoint, got none", file);
  BundleIndex index{.shards = parse_header(stored[0].value, file), .entries = {}};
  for (std::size_t i = 1; i < stored.size(); ++i) index.entries.push_back(parse_entry(stored[i], index.shards, file));
  check_no_overlap(index.entries, file);
  return index;
}

}  // namespace bertrand::io
