// The shards of a checkpoint, read and written.
#include "io/tensor_bundle.h"

#include <algorithm>

#include "io/bundle_types.h"
#include "io/crc32c.h"
#include "io/error.h"
#include "io/in_threads.h"
#include "io/input_files.h"
#include "io/table.h"

namespace bertrand::io {
namespace {

namespace fs = std::filesystem;

fs::path with(const fs::path& prefix, const std::string& ending) { return prefix.string() + ending; }

BundleIndex read_index(const fs::path& file) {
  refuse_directory(file, "index of a checkpoint", Failure::model);
  return parse_bundle_index(MappedFile(file).text(), file.string());
}

}  // namespace

BundleFile::BundleFile(const fs::path& prefix)
    : prefix_(prefix), path_(with(prefix, ".index")), index_(read_index(path_)) {
  check_shards();
  std::erase_if(index_.entries, [](const BundleEntry& entry) { return entry.name.starts_with('\0'); });
}

std::string BundleFile::place(const BundleEntry& entry) const {
  return fmt::format("{}: tensor \"{}\"", path_.string(), printable(entry.name));
}

fs::path BundleFile::shard_path(std::uint32_t shard) const {
  return with(prefix_, fmt::format(".data-{:05}-of-{:05}", shard, index_.shards));
}

void BundleFile::check_shards() const {
  std::map<std::uint32_t, std::uint64_t> sizes;
  for (const BundleEntry& entry : index_.entries) {
    if (!entry.slices.empty()) continue;
    if (!sizes.contains(entry.shard)) {
      const fs::path file = shard_path(entry.shard);
      if (!fs::is_regular_file(file))
        fail(Failure::model, "{}: expected {} beside it, got no such file", path_.string(), file.filename().string());
      sizes[entry.shard] = fs::file_size(file);
    }
    if (entry.offset + entry.size > sizes[entry.shard])
      fail(Failure::model,
           "{}: tensor \"{}\": expected to end by {}, where the file does, got {}; hint: is it cut short?",
           shard_path(entry.shard).string(), printable(entry.name), sizes[entry.shard], entry.offset + entry.size);
  }
}

std::span<const std::byte> BundleFile::bytes(const BundleEntry& entry) const {
  if (!entry.slices.empty())
    fail(Failure::model,
         "{}: expected one piece, got a partitioned variable of {}; hint: save it without a partitioner", place(entry),
         entry.slices.size());
  const std::lock_guard lock(opening_);
  auto& shard = shards_[entry.shard];
  if (!shard) shard = std::make_unique<const MappedFile>(shard_path(entry.shard));
  return shard->bytes().subspan(entry.offset, entry.size);
}

void BundleFile::verify(const std::vector<const BundleEntry*>& entries, int threads) const {
  in_threads(entries.size(), threads, [&](std::size_t i) {
    const BundleEntry& entry = *entries[i];
    if (const std::uint32_t computed = masked(crc32c(bytes(entry))); computed != entry.crc)
      fail(Failure::model, "{}: crc32c: expected {:08x} (stored, masked), got {:08x}; hint: is {} damaged?",
           place(entry), entry.crc, computed, shard_path(entry.shard).filename().string());
  });
}

void write_bundle(Files& files, const fs::path& prefix, std::vector<TensorSource> tensors) {
  std::ranges::sort(tensors, {}, &TensorSource::name);
  BundleIndex index;
  std::uint64_t offset = 0;
  FileWriter data(files, with(prefix, ".data-00000-of-00001"));
  for (const TensorSource& tensor : tensors) {
    const BundleType* type = find_bundle_type(tensor.type->name);
    check(type, "bundle: \"{}\": TensorFlow has no type {}", tensor.name, tensor.type->name);
    const std::uint32_t crc = read_in_pieces(tensor, [&](std::span<const std::byte> piece) { data.write(piece); });
    index.entries.push_back({.name = tensor.name,
                             .type = type->number,
                             .dims = tensor.dims,
                             .offset = offset,
                             .size = tensor.bytes,
                             .crc = masked(crc)});
    offset += tensor.bytes;
  }
  data.finish();
  write_file(files, with(prefix, ".index"), bundle_index_bytes(index));
}

}  // namespace bertrand::io
