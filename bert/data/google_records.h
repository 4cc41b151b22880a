// The files of google-research/bert create_pretraining_data.py: its instances, encoded, in its order.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "bert/data/google_instances.h"
#include "io/files.h"

namespace bertrand::data {

struct RecordFiles {
  std::vector<std::filesystem::path> files;  ///< record k goes to file k modulo their number
  int threads = 1;                           ///< for encoding; the files do not depend on it
  /// Called now and then with the share of the work done, 0 to 1. What it throws ends the work and leaves no file.
  std::function<void(double share)> progress = nullptr;
};

/// What was written.
struct RecordCounts {
  std::uint64_t records = 0;
  std::uint64_t tokens = 0;  ///< not counting padding
  std::uint64_t masked = 0;
  std::uint64_t random_next = 0;
  std::uint64_t bytes = 0;
};

/// Draws the instances of a corpus and writes them as TFRecords of tf.Example with the script's seven features. The
/// files appear together, when all are complete. Memory: the corpus, 4 bytes an instance, and a fixed budget; the
/// instances wait on the disk beside the first file. Throws Error(Failure::io), and as GoogleInstances does.
RecordCounts write_google_records(const Corpus& corpus, const text::Vocabulary& vocabulary,
                                  const GoogleOptions& options, const RecordFiles& output,
                                  io::Files& files = io::Files::system());

}  // namespace bertrand::data
