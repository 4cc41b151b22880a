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

/// Of every record its features sorted by name, a line `name:v v v` each, every value as an integer (floats without
/// their fraction, strings byte by byte), to standard output. Throws Error.
void write_dump(const DumpOptions& options);

}  // namespace bertrand::prepare
