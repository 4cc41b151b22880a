// Checkpoints of TensorFlow (tensorflow/core/util/tensor_bundle): PREFIX.index, a table of names, and the numbers in
// PREFIX.data-00000-of-00001, or in several such shards.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/files.h"
#include "io/tensor_source.h"

namespace bertrand::io {

/// What the index says of one tensor.
struct BundleEntry {
  std::string name;
  int type = 0;  ///< a number of TensorFlow's DataType
  std::vector<std::int64_t> dims;
  std::uint32_t shard = 0;
  std::uint64_t offset = 0, size = 0;  ///< bytes of that shard
  std::uint32_t crc = 0;               ///< CRC-32C of the bytes, masked
  std::vector<std::string> slices;     ///< of a partitioned variable, as they are in the file; its bytes are elsewhere

  /// As safetensors files call it (F32, BF16, …), or STRING.
  std::string_view type_name() const;
};

struct BundleIndex {
  std::uint32_t shards = 1;
  std::vector<BundleEntry> entries;  ///< sorted by name, bytewise
};

/// The bytes of PREFIX.index.
std::string bundle_index_bytes(const BundleIndex& index);

/// Reads the bytes of an index. `file` begins every message. Trusts nothing: throws Error(Failure::model) for what
/// parse_table() refuses, no header, a newer or big-endian format, an unknown type, a shape that overflows or does not
/// match its bytes, a shard that there is not, tensors of a shard that overlap.
BundleIndex parse_bundle_index(std::string_view bytes, const std::string& file);

/// A checkpoint read through memory.
class BundleFile {
 public:
  /// Reads the index and looks at the sizes of the shards. Throws Error(Failure::model) also for a shard that is
  /// missing or too short.
  explicit BundleFile(const std::filesystem::path& prefix);

  /// Sorted by name. What the slices of a partitioned variable are stored as is left out.
  const std::vector<BundleEntry>& entries() const { return index_.entries; }
  const std::filesystem::path& path() const { return path_; }  ///< of the index
  /// <file of the index>: tensor "<name>", for messages.
  std::string place(const BundleEntry& entry) const;

  /// Little-endian, row-major, of unknown alignment. Throws Error(Failure::model) if the entry is partitioned.
  std::span<const std::byte> bytes(const BundleEntry& entry) const;
  /// Compares the CRC of each entry's bytes, in this many threads. Throws Error(Failure::model) naming the first that
  /// differs.
  void verify(const std::vector<const BundleEntry*>& entries, int threads) const;

 private:
  std::filesystem::path shard_path(std::uint32_t shard) const;
  void check_shards() const;

  std::filesystem::path prefix_, path_;
  BundleIndex index_;
  mutable std::mutex opening_;
  mutable std::map<std::uint32_t, std::unique_ptr<const MappedFile>> shards_;
};

/// PREFIX.index and PREFIX.data-00000-of-00001 of these tensors, sorted by name as TensorFlow's Saver does, each
/// durable, with the bytes of TensorFlow's SaveV2. Throws Error(Failure::bug) for a name that comes twice or a type
/// that TensorFlow does not have, and Error(Failure::io).
void write_bundle(Files& files, const std::filesystem::path& prefix, std::vector<TensorSource> tensors);

}  // namespace bertrand::io
