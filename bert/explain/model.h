// A model that shows what it does with a text: who attends to whom, what each word adds to a class, and where the text
// lies among others.
#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bert/directory/model_directory.h"
#include "bert/network/heads.h"
#include "nn/parameter_set.h"

namespace bertrand::explain {

/// How the model sees one text of n tokens.
struct Look {
  std::vector<std::string> tokens;  ///< word pieces, [CLS] and [SEP] among them
  /// For each head of each layer, the first layer's first: [n, n], row i says how token i shares its attention out.
  /// A row adds up to 1.
  std::vector<std::vector<float>> attention;
  /// One output of a classifier, and what each token adds to it: gradient × input, the scalar product of a token's word
  /// vector and the derivative of the output by it (Shrikumar et al. 2016).
  struct Attribution {
    std::size_t output = 0;
    double logit = 0;
    std::vector<double> tokens;  ///< [n]
  };
  std::vector<double> logits;             ///< of a classifier; else empty
  std::vector<Attribution> attributions;  ///< of the outputs with the largest logits, the largest first
};

class Model {
 public:
  static constexpr int kMostTokens = 128;     ///< that are read of a text: attention has their number squared
  static constexpr std::size_t kOutputs = 4;  ///< that are differentiated

  /// Loads the encoder, and the classifier if the model is one. Throws Error(Failure::model), and for `tokenizer` as
  /// bert::read_tokenizer().
  Model(const std::filesystem::path& directory, Backend& backend, DType dtype = DType::f32,
        const bert::TokenizerFlags& tokenizer = {});
  ~Model();

  const bert::Config& config() const { return config_; }
  /// The classes of a classifier; else empty.
  const std::vector<std::string>& labels() const { return labels_; }

  /// [CLS] a [SEP], or [CLS] a [SEP] b [SEP], cut to kMostTokens. A text may be empty, as a row of a table may. Throws
  /// Error(Failure::model) if the model has too few positions, or for a pair one type of tokens only.
  bert::Sequence encode(std::string_view text, const std::optional<std::string>& pair = {}) const;
  Look look(const bert::Sequence& sequence) const;
  /// The last layer's rows of [CLS], [sequences, hidden], one after the other.
  std::vector<float> first_rows(std::span<const bert::Sequence> sequences) const;

 private:
  void require_readable(bool pair) const;
  Variable dense(const std::string& name, const Variable& x) const;
  std::vector<std::vector<float>> attention_of(std::size_t layer, const Variable& x) const;
  Variable logits_from(const Variable& words, const bert::PackedBatch& batch) const;

  std::filesystem::path directory_;
  bert::Config config_;
  text::Tokenizer tokenizer_;
  std::vector<std::string> labels_;
  Backend& backend_;
  std::unique_ptr<bert::ForSequenceClassification> classifier_;  // one of the two
  std::unique_ptr<bert::EncoderAlone> encoder_;
  const bert::Bert& bert_;
  nn::ParameterSet parameters_;
};

}  // namespace bertrand::explain
