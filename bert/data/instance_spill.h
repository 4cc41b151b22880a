// Instances on disk between their drawing and their writing, so that memory does not grow with their number.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

#include "bert/data/google_instances.h"
#include "io/unnamed_file.h"

namespace bertrand::data {

/// A file of instances, all of one size, without a name: it is gone when the program ends, however it ends.
class InstanceSpill {
 public:
  /// Makes the file under a name that begins with `file`, and removes the name. `most_masked` bounds the masked tokens
  /// of every instance. Every call throws Error(Failure::io).
  InstanceSpill(io::Files& files, const std::filesystem::path& file, std::size_t most_masked);

  void append(const Instance& instance);
  /// After the last append: what is still in memory goes to the disk.
  void finish();
  /// Instance `number`, in the order of append. Threads may call this together.
  void read(std::uint64_t number, Instance& instance) const;

 private:
  void flush();

  io::UnnamedFile file_;
  std::size_t most_masked_;
  std::size_t bytes_;  // of one instance
  std::string buffer_;
};

}  // namespace bertrand::data
