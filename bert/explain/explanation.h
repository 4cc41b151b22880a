// What a model does with texts, and where the rows of an evaluation lie in it, as numbers for a page.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "bert/explain/map.h"
#include "bert/explain/model.h"
#include "io/files.h"
#include "io/json.h"

namespace bertrand::explain {

/// A text, or a pair of texts. `label` and `prediction` are names or numbers as a reader is to see them; "" is none.
struct Text {
  std::string text;
  std::optional<std::string> pair = {};
  std::string label = {}, prediction = {};
};

/// What is computed of how many; a page says so.
inline constexpr std::size_t kTexts = 8, kRows = 1000;

class Explanation {
 public:
  /// Computes everything: attention and gradients of the first kTexts texts, and a map of kRows of `rows`, spread
  /// evenly over them.
  Explanation(const Model& model, const std::vector<Text>& texts, const std::vector<Text>& rows);

  /// "layers", "heads", "texts", "entropy" (in bits, a list of heads for each layer, the mean over all tokens of the
  /// texts), "map" if there are three rows or more, and "bounds". Attention is in thousandths, of the first `tokens`
  /// tokens of each text.
  io::Json json(std::size_t tokens) const;

  /// The rows of the map for TensorBoard's projector, in a directory that is made if it is not there: embeddings.tsv,
  /// metadata.tsv and projector_config.pbtxt. Throws Error(Failure::io).
  void write_projector(io::Files& files, const std::filesystem::path& directory) const;

 private:
  io::Json text_json(std::size_t i, std::size_t tokens) const;
  io::Json entropy() const;
  io::Json map() const;

  std::size_t layers_, heads_;
  std::vector<std::string> labels_;
  std::string problem_type_;
  std::vector<Text> texts_, rows_;
  std::size_t texts_given_, rows_given_;
  std::vector<Look> looks_;
  std::vector<float> points_;  // [rows, hidden]
  Plane plane_;
  std::vector<std::vector<Near>> near_;
};

}  // namespace bertrand::explain
