// Disks that fail: at a call of one's choice, or by losing power.
#pragma once
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "io/error.h"
#include "io/files.h"
#include "support/program.h"

namespace support {

using bertrand::io::Files;
using bertrand::io::Opening;
namespace fs = std::filesystem;

/// Does as the system does, but the call numbered `failing` (from 1) fails, a write after half of its bytes.
class FailingFiles : public Files {
 public:
  FailingFiles(int failing, std::string reason) : failing_(failing), reason_(std::move(reason)) {}
  int calls() const { return calls_; }

  int open(const fs::path& file, Opening opening) override {
    count("open", file);
    return Files::open(file, opening);
  }
  void write(int descriptor, std::span<const std::byte> bytes, const fs::path& file) override {
    if (calls_ + 1 == failing_) Files::write(descriptor, bytes.first(bytes.size() / 2), file);
    count("write", file);
    Files::write(descriptor, bytes, file);
  }
  void sync(int descriptor, const fs::path& file) override {
    count("fsync", file);
    Files::sync(descriptor, file);
  }
  void close(int descriptor, const fs::path& file) override {
    Files::close(descriptor, file);  // the system closes it even if it reports an error
    count("close", file);
  }
  void make_directory(const fs::path& directory) override {
    count("mkdir", directory);
    Files::make_directory(directory);
  }
  void sync_directory(const fs::path& directory) override {
    count("fsync", directory);
    Files::sync_directory(directory);
  }
  void rename(const fs::path& from, const fs::path& to) override {
    count("rename", to);
    Files::rename(from, to);
  }
  void remove_all(const fs::path& path) override {
    count("remove", path);
    Files::remove_all(path);
  }
  void cut(const fs::path& file, std::uint64_t bytes) override {
    count("truncate", file);
    Files::cut(file, bytes);
  }

 private:
  void count(const char* call, const fs::path& path) {
    if (++calls_ == failing_) bertrand::fail(bertrand::Failure::io, "{}: {}: {}", path.string(), call, reason_);
  }

  int failing_, calls_ = 0;
  std::string reason_;
};

/// A file or directory as the process sees it and as the disk has it.
struct Inode {
  bool directory = false;
  std::string seen, durable;
  std::map<std::string, std::shared_ptr<Inode>> seen_entries, durable_entries;
};

/// What of the unsynced is lost when the power fails. A disk may keep any of it, in any order.
enum class Lost { nothing, data, half_of_data, everything };

/// Does as the system does and keeps a diary, from which the disk after a power failure at any moment can be rebuilt.
class RecordingFiles : public Files {
 public:
  explicit RecordingFiles(fs::path root) : root_(std::move(root)) {}
  std::size_t calls() const { return diary_.size(); }

  int open(const fs::path& file, Opening opening) override {
    if (opening == Opening::create || opening == Opening::create_new) note({Call::create, file});
    return Files::open(file, opening);
  }
  void write(int descriptor, std::span<const std::byte> bytes, const fs::path& file) override {
    note({Call::write, file, {}, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}});
    Files::write(descriptor, bytes, file);
  }
  void sync(int descriptor, const fs::path& file) override {
    note({Call::sync, file});
    Files::sync(descriptor, file);
  }
  void make_directory(const fs::path& directory) override {
    note({Call::make_directory, directory});
    Files::make_directory(directory);
  }
  void sync_directory(const fs::path& directory) override {
    note({Call::sync, directory});
    Files::sync_directory(directory);
  }
  void rename(const fs::path& from, const fs::path& to) override {
    note({Call::rename, from, to});
    Files::rename(from, to);
  }
  void remove_all(const fs::path& path) override {
    note({Call::remove, path});
    Files::remove_all(path);
  }

  /// Fills `to`, an empty directory, with what is left of the root when the power fails after `calls` calls.
  void restore(std::size_t calls, Lost lost, const fs::path& to) const {
    Inode root{.directory = true};
    for (std::size_t i = 0; i < calls; ++i) replay(root, diary_[i]);
    write_out(root, lost, to);
  }

 private:
  struct Call {
    enum Kind { create, write, sync, make_directory, rename, remove } kind;
    fs::path path, to;
    std::string bytes;
  };

  void note(Call call) {
    call.path = call.path.lexically_relative(root_);
    if (!call.to.empty()) call.to = call.to.lexically_relative(root_);
    diary_.push_back(std::move(call));
  }

  static Inode& find(Inode& root, const fs::path& path) {
    Inode* node = &root;
    for (const auto& part : path)
      if (part != "." && !part.empty()) node = node->seen_entries.at(part).get();
    return *node;
  }

  static void replay(Inode& root, const Call& call) {
    auto& siblings = find(root, call.path.parent_path()).seen_entries;
    const std::string name = call.path.filename();
    switch (call.kind) {
      case Call::create: siblings[name] = std::make_shared<Inode>(); break;
      case Call::write: siblings.at(name)->seen += call.bytes; break;
      case Call::make_directory: siblings[name] = std::make_shared<Inode>(Inode{.directory = true}); break;
      case Call::remove: siblings.erase(name); break;
      case Call::sync: {
        Inode& node = find(root, call.path);
        node.durable = node.seen;
        node.durable_entries = node.seen_entries;
        break;
      }
      case Call::rename: {
        const auto moved = siblings.at(name);
        siblings.erase(name);
        find(root, call.to.parent_path()).seen_entries[call.to.filename()] = moved;
        break;
      }
    }
  }

  static void write_out(const Inode& node, Lost lost, const fs::path& to) {
    for (const auto& [name, child] : lost == Lost::everything ? node.durable_entries : node.seen_entries) {
      if (child->directory) {
        fs::create_directory(to / name);
        write_out(*child, lost, to / name);
      } else if (lost == Lost::nothing) {
        write_text(to / name, child->seen);
      } else {
        const std::size_t half = lost == Lost::half_of_data ? (child->seen.size() - child->durable.size()) / 2 : 0;
        write_text(to / name, child->seen.substr(0, child->durable.size() + half));
      }
    }
  }

  fs::path root_;
  std::vector<Call> diary_;
};

}  // namespace support
