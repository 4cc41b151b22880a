// The features of a line of text: what some layers of the encoder say about each of its tokens, in the form of
// google-research/bert's extract_features.py.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "bert/network/bert.h"
#include "bert/tasks/encode.h"
#include "bert/text/tokenizer.h"

namespace bertrand::extract {

/// The encoder under the name that it has on disk.
class Model : public nn::Module {
 public:
  Model(const bert::Config& model_config, bert::Pooling pooling)
      : config(model_config), bert(in("bert"), model_config, pooling) {}

  const bert::Config config;
  bert::Bert bert;
};

/// A line is one text, or two around its last " ||| ". Unlike a labelled example it may be empty.
tasks::Encoded encode_line(std::string_view line, const text::Tokenizer& tokenizer, int max_length);

/// Layers as the command line lists them, "-1,-2": from 0, or from the end with -1 the last. Throws Failure::usage for
/// one that the model does not have.
std::vector<int> parse_layers(const std::string& list, Dim layers_of_model);

struct Request {
  std::vector<int> layers;
  bool pooled = false;  ///< also the pooler's output
};

/// One JSON object per line of text, each ended by a newline; values are rounded to 6 decimals. `first_index` numbers
/// the first one.
std::string features_json(const Model& model, const std::vector<tasks::Encoded>& lines, const Request& request,
                          const text::Vocabulary& vocabulary, std::int64_t first_index, Backend& backend);

}  // namespace bertrand::extract
