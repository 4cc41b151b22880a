// extract's flags, and its run from text to features.
#pragma once
#include <filesystem>
#include <string>

#include "bert/directory/model_directory.h"
#include "bert/features/features.h"
#include "tensor/dtype.h"

namespace CLI {
class App;
}

namespace bertrand::extract {

struct Options {
  std::filesystem::path model;  ///< a model directory or a checkpoint
  bert::TokenizerFlags tokenizer;
  bool strict = false;           ///< every tensor of the model must fit
  std::filesystem::path input;   ///< lines of text
  std::filesystem::path output;  ///< JSON lines, or .npy
  std::string layers;            ///< empty: the last two, or the only one; with pooling the last
  bool pooled = false;
  std::optional<inference::Pooling> pooling;
  bool normalize = false;
  int max_seq_length = 0;  ///< 0: 128, or the model's positions if these are fewer
  int batch_size = 32;     ///< lines at once; does not change the result
  DType precision = DType::f32;
  int threads = 0;  ///< 0: every core
  std::string cpu_kernels = "auto";
};

void add_flags(CLI::App& app, Options& options);

/// The output appears only when it is complete.
void run(const Options& options);

}  // namespace bertrand::extract
