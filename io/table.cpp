// Blocks of entries, an index of the blocks, and a footer that says where the index is.
#include "io/table.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "io/crc32c.h"
#include "io/error.h"
#include "io/little_endian.h"
#include "io/snappy.h"

namespace bertrand::io {
namespace {

constexpr std::uint64_t kMagic = 0xdb4775248b80fb57;
constexpr std::size_t kFooter = 48, kMagicSize = 8;
constexpr std::size_t kTrailer = 5;  // of a block: a byte for its compression, four for its CRC
constexpr std::size_t kLongestKey = 4096;
// Of a block that is unpacked, and of all entries: keys share their beginnings, so a few bytes can become many.
// Far more than a checkpoint of BERT has.
constexpr std::size_t kMostBytes = std::size_t{1} << 24;
constexpr int kRestartInterval = 16;  // of data blocks; 1 in the index
enum Compression : std::uint8_t { kNone = 0, kSnappy = 1 };

std::size_t shared_prefix(std::string_view a, std::string_view b) {
  const auto differ =
      std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(std::min(a.size(), b.size())), b.begin());
  return static_cast<std::size_t>(differ.first - a.begin());
}

/// Entries, each without what its key shares with the key before it, but for one in `interval`, a restart.
class Block {
 public:
  explicit Block(int interval) : interval_(interval) {}

  void add(std::string_view key, std::string_view value) {
    std::size_t shared = 0;
    if (since_restart_ == interval_) {
      restarts_.push_back(static_cast<std::uint32_t>(bytes_.size()));
      since_restart_ = 0;
    } else {
      shared = shared_prefix(key, last_);
    }
    append_varint(bytes_, shared);
    append_varint(bytes_, key.size() - shared);
    append_varint(bytes_, value.size());
    bytes_.append(key.substr(shared)).append(value);
    last_ = key;
    ++since_restart_;
  }
  bool empty() const { return bytes_.empty(); }
  std::size_t size() const { return bytes_.size() + 4 * restarts_.size() + 4; }
  std::string finish() {
    for (const std::uint32_t restart : restarts_) append_fixed(bytes_, restart);
    append_fixed(bytes_, static_cast<std::uint32_t>(restarts_.size()));
    return std::move(bytes_);
  }

 private:
  int interval_, since_restart_ = 0;
  std::string bytes_, last_;
  std::vector<std::uint32_t> restarts_ = {0};
};

unsigned char byte_of(char c) { return static_cast<unsigned char>(c); }

/// A short key that is at least a and below b: what both begin with and one byte more, if there is one between them.
std::string separator(const std::string& a, std::string_view b) {
  const std::size_t shared = shared_prefix(a, b);
  if (shared == std::min(a.size(), b.size()) || byte_of(a[shared]) + 1 >= byte_of(b[shared])) return a;
  std::string between = a.substr(0, shared + 1);
  ++between.back();
  return between;
}

/// A short key that is at least a.
std::string successor(const std::string& a) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (byte_of(a[i]) == 0xFF) continue;
    std::string above = a.substr(0, i + 1);
    ++above.back();
    return above;
  }
  return a;
}

/// Where a block is in the file; size without its trailer.
struct Handle {
  std::uint64_t offset = 0, size = 0;
};

std::string text_of(const Handle& handle) {
  std::string text;
  append_varint(text, handle.offset);
  append_varint(text, handle.size);
  return text;
}

std::string append_block(std::string& out, Block&& block) {
  const Handle handle{.offset = out.size(), .size = block.size()};
  std::string bytes = block.finish();
  bytes.push_back(kNone);
  out += bytes;
  append_fixed(out, masked(crc32c(bytes)));
  return text_of(handle);
}

}  // namespace

std::string table_bytes(const std::vector<TableEntry>& entries, std::size_t block_size) {
  std::string out;
  Block block(kRestartInterval), index(1);
  std::optional<std::string> pending;  // the handle of a block that is not in the index yet
  const auto flush = [&] { pending = append_block(out, std::exchange(block, Block(kRestartInterval))); };
  const std::string* last = nullptr;
  for (const auto& [key, value] : entries) {
    check(!last || *last < key, "table: the key \"{}\" does not come after \"{}\"", key, last ? *last : "");
    // A large entry is not added to what is there already.
    if (!block.empty() && key.size() + value.size() >= 2 * block_size) flush();
    if (pending) {
      index.add(separator(*last, key), *pending);
      pending.reset();
    }
    block.add(key, value);
    last = &key;
    if (block.size() >= block_size) flush();
  }
  if (!block.empty()) flush();
  std::string footer = append_block(out, Block(kRestartInterval));  // of meta blocks there are none
  if (pending) index.add(successor(*last), *pending);
  footer += append_block(out, std::move(index));
  footer.resize(kFooter - kMagicSize, '\0');
  append_fixed(footer, kMagic);
  return out + footer;
}

namespace {

class Reader {
 public:
  Reader(std::string_view bytes, const std::string& file) : bytes_(bytes), file_(file) {}

  std::vector<TableEntry> entries() {
    if (bytes_.size() < kFooter)
      fail(Failure::model, "{}: table: expected at least {} bytes, got {}; hint: is it cut short?", file_, kFooter,
           bytes_.size());
    const std::size_t footer = bytes_.size() - kFooter;
    if (const auto magic = load_fixed<std::uint64_t>(bytes_.data() + bytes_.size() - kMagicSize); magic != kMagic)
      fail(Failure::model,
           "{}@{}: table: expected the magic number {:016x}, got {:016x}; hint: is it cut short, or no .index of a "
           "TensorFlow checkpoint?",
           file_, bytes_.size() - kMagicSize, kMagic, magic);
    std::string_view handles = bytes_.substr(footer, kFooter - kMagicSize);
    const std::string place = fmt::format("{}@{}", file_, footer);
    take_handle(handles, place);  // of the meta blocks, which say nothing about the entries
    const Handle index = take_handle(handles, place);
    std::vector<TableEntry> all, blocks;
    append_entries(index, place, blocks);
    std::uint64_t end = 0;  // of the block before: one that is named again and again would be read as often
    for (const TableEntry& block : blocks) {
      std::string_view text = block.value;
      const Handle handle = take_handle(text, place);
      if (handle.offset < end)
        fail(Failure::model, "{}: table: expected a block from byte {} on, where the one before ends, got {}", place,
             end, handle.offset);
      const std::size_t before = all.size();
      append_entries(handle, place, all);
      end = handle.offset + handle.size + kTrailer;
      if (before > 0 && before < all.size() && all[before].key <= all[before - 1].key)
        refuse_order(place, all[before].key, all[before - 1].key);
    }
    return all;
  }

 private:
  static std::uint64_t take_number(std::string_view& rest, const std::string& place) {
    if (const auto number = take_varint(rest)) return *number;
    fail(Failure::model, "{}: table: expected a number, got none that ends", place);
  }

  static Handle take_handle(std::string_view& rest, const std::string& place) {
    const std::uint64_t offset = take_number(rest, place);
    return {.offset = offset, .size = take_number(rest, place)};
  }

  [[noreturn]] static void refuse_order(const std::string& place, std::string_view key, std::string_view before) {
    fail(Failure::model, "{}: table: expected keys in order, got \"{}\" after \"{}\"", place, printable(key),
         printable(before));
  }

  /// The bytes of a block, unpacked.
  std::string block(const Handle& handle, const std::string& place) const {
    const std::uint64_t end = bytes_.size() - kFooter;
    if (handle.offset > end || handle.size > end - handle.offset || end - handle.offset - handle.size < kTrailer)
      fail(Failure::model, "{}: table: expected a block within {} bytes, got {} bytes at {}", place, end, handle.size,
           handle.offset);
    const std::string here = fmt::format("{}@{}", file_, handle.offset);
    const std::string_view checked = bytes_.substr(handle.offset, handle.size + 1);
    const auto stored = load_fixed<std::uint32_t>(bytes_.data() + handle.offset + handle.size + 1);
    if (const std::uint32_t computed = masked(crc32c(checked)); stored != computed)
      fail(Failure::model,
           "{}: table: block: crc32c: expected {:08x} (stored, masked), got {:08x}; hint: is it damaged?", here, stored,
           computed);
    const auto compression = byte_of(checked.back());
    const std::string_view packed = checked.substr(0, handle.size);
    if (compression == kSnappy) return decompress_snappy(packed, kMostBytes, here, Failure::model);
    if (compression != kNone)
      fail(Failure::model, "{}: table: block: expected compression 0 (none) or 1 (Snappy), got {}", here, compression);
    return std::string(packed);
  }

  void append_entries(const Handle& handle, const std::string& named_at, std::vector<TableEntry>& entries) {
    const std::string bytes = block(handle, named_at);
    const std::string place = fmt::format("{}@{}", file_, handle.offset);
    const std::size_t end = end_of_entries(bytes, place);
    std::string_view rest = std::string_view(bytes).substr(0, end);
    std::string key;
    const std::size_t first = entries.size();
    while (!rest.empty()) {
      const std::uint64_t shared = take_number(rest, place), unshared = take_number(rest, place),
                          size = take_number(rest, place);
      if (shared > key.size())
        fail(Failure::model, "{}: table: expected at most {} bytes shared with the key before, got {}", place,
             key.size(), shared);
      if (unshared > rest.size() || size > rest.size() - unshared)
        fail(Failure::model, "{}: table: expected an entry within its block, which has {} bytes more, got {} and {}",
             place, rest.size(), unshared, size);
      if (shared + unshared > kLongestKey)
        fail(Failure::model, "{}: table: expected a key of at most {} bytes, got {}", place, kLongestKey,
             shared + unshared);
      held_ += sizeof(TableEntry) + shared + unshared + size;
      if (held_ > kMostBytes)
        fail(Failure::model, "{}: table: expected at most {} bytes of entries, got more", place, kMostBytes);
      std::string next = key.substr(0, shared) + std::string(rest.substr(0, unshared));
      if (entries.size() > first && next <= key) refuse_order(place, next, key);
      key = std::move(next);
      entries.push_back({.key = key, .value = std::string(rest.substr(unshared, size))});
      rest.remove_prefix(unshared + size);
    }
  }

  /// After the entries come the places of the restarts, then their number.
  static std::size_t end_of_entries(std::string_view block, const std::string& place) {
    if (block.size() < 4)
      fail(Failure::model, "{}: table: expected a block of at least 4 bytes, got {}", place, block.size());
    const auto restarts = load_fixed<std::uint32_t>(block.data() + block.size() - 4);
    if (restarts > (block.size() - 4) / 4)
      fail(Failure::model, "{}: table: expected at most {} restarts, got {}", place, (block.size() - 4) / 4, restarts);
    const std::size_t end = block.size() - 4 - 4 * std::size_t{restarts};
    for (std::size_t i = 0; i < restarts; ++i)
      if (const auto restart = load_fixed<std::uint32_t>(block.data() + end + 4 * i); restart > end)
        fail(Failure::model, "{}: table: expected a restart within {} bytes, got {}", place, end, restart);
    return end;
  }

  std::string_view bytes_;
  const std::string& file_;
  std::size_t held_ = 0;  // bytes of entries
};

}  // namespace

std::vector<TableEntry> parse_table(std::string_view bytes, const std::string& file) {
  return Reader(bytes, file).entries();
}

std::string printable(std::string_view key) {
  constexpr std::size_t kMost = 80;
  std::string text;
  for (const char c : key.substr(0, kMost))
    if (c >= ' ' && c <= '~') text += c;
    else text += fmt::format("\\x{:02x}", byte_of(c));
  return key.size() > kMost ? text + "…" : text;
}

}  // namespace bertrand::io
