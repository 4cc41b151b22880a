// ONNX graphs on disk: model.onnx, a ModelProto (https://github.com/onnx/onnx/blob/main/onnx/onnx.proto), and the file
// beside it that holds the weights of a large model.
#pragma once
#include <filesystem>
#include <map>
#include <string>

#include "bert/export/onnx_graph.h"
#include "io/files.h"

namespace bertrand::exporting::onnx {

struct FileOptions {
  bool external_data = false;  ///< weights in a file of their own, whatever the size
  /// The most bytes of a model without such a file. A reader of protocol buffers takes no more than 2^31 - 1.
  std::uint64_t most_bytes = 1'800'000'000;
};

/// Writes `file`, durable, and `file`.data if the weights do not go into it. Weights are read once, in pieces of 1 MiB.
/// The metadata get "weights_sha256": the hash of the bytes of all weights in their order in the graph.
/// Throws Error(Failure::io).
void write_file(io::Files& files, const std::filesystem::path& file, const Graph& graph,
                std::map<std::string, std::string> metadata, const FileOptions& options);

}  // namespace bertrand::exporting::onnx
