// The features of a line of text: what some layers of the encoder say about each of its tokens, in the form of
// google-research/bert's extract_features.py.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bert/inference/open.h"
#include "bert/network/heads.h"
#include "bert/tasks/encode.h"
#include "bert/text/tokenizer.h"

namespace bertrand::features {

/// A line is one text, or two around its last " ||| ". Unlike a labelled example it may be empty.
text::Sequence encode_line(std::string_view line, const text::Tokenizer& tokenizer, int max_length);

/// Layers as the command line lists them, "-1,-2": from 0, or from the end with -1 the last. Throws Failure::usage for
/// one that the model does not have.
std::vector<int> parse_layers(const std::string& list, Dim layers_of_model);

struct Request {
  std::vector<int> layers;                    ///< one if lines become vectors
  bool pooled = false;                        ///< also the pooler's output
  std::optional<inference::Pooling> pooling;  ///< of a line's tokens to one vector; none: each token has its own
  bool normalize = false;                     ///< vectors of length 1
};

/// What computes features.
struct Extractor {
  const bert::Config& config;
  const bert::Bert& bert;
  const text::Vocabulary& vocabulary;
  Backend& backend;
};
/// One JSON object per line of text, each ended by a newline; values are rounded to 6 decimals. `first_index` is the
/// number of the first line. Throws Error(Failure::input) naming the number of a line that the model cannot take.
std::string features_json(const Extractor& extractor, const std::vector<text::Sequence>& lines, const Request& request,
                          std::int64_t first_index);

/// The vectors of the lines, [lines, hidden size], for any pooling. Throws as features_json() does.
std::vector<float> line_vectors(const Extractor& extractor, const std::vector<text::Sequence>& lines,
                                const Request& request, std::int64_t first_index);
/// One JSON object per vector: {"linex_index": 0, "embedding": […]}, with 6 decimals.
std::string vectors_json(std::span<const float> vectors, std::size_t width, std::int64_t first_index);

}  // namespace bertrand::features
