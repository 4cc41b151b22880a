// prepare dump: the records of TFRecord files as text.
#pragma once
#include <filesystem>
#include <vector>

#include "io/tfrecord.h"

namespace bertrand::prepare {

struct DumpOptions {
  std::vector<std::filesystem::path> files;
  io::OnCorrupt on_corrupt = io::OnCorrupt::stop;
};

/// Prints the features of every record, sorted by name, a line `name:v v v` each. Every value is an integer (floats
/// without their fraction, strings byte by byte). Throws Error.
void write_dump(const DumpOptions& options);

}  // namespace bertrand::prepare
