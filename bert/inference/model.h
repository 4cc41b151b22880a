// What the predictors share: a model directory that was read, a network with its weights, and numbers for JSON.
#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bert/inference/forward.h"
#include "bert/inference/open.h"
#include "bert/text/tokenizer.h"
#include "nn/parameter_set.h"

namespace bertrand::inference {

/// A model directory without its weights, and where the weights are to be.
struct Model {
  std::filesystem::path directory;
  bert::Config config;
  text::Tokenizer tokenizer;
  int max_length;  ///< tokens of a sequence made from text
  int max_ids;     ///< of a sequence that comes as ids
  Backend& backend;
  DType dtype;
  bool strict = false;

  /// The ids of the text that is the value of `key`. Throws Error(Failure::input) if there is none.
  std::vector<std::int32_t> pieces(std::string_view text, std::string_view key, const std::string& where) const;
  /// What is read of one text or two.
  struct Input {
    bert::Sequence sequence;
    bool cut = false;  ///< whether it lost its end
  };
  /// [CLS] pieces [SEP], or with a pair [CLS] pieces [SEP] pair [SEP], cut as tasks::encode_pieces() does.
  Input input(std::vector<std::int32_t> pieces, std::optional<std::vector<std::int32_t>> pair = {}) const;
  /// That of the request's "text", and of its "text_pair" if it has one. Throws as pieces(), and Error(Failure::input)
  /// for a pair if the model has one type of tokens only, or too few for a pair.
  Input text_or_pair(io::JsonReader& request, const std::string& where) const;
  /// Throws Error(Failure::model) if the model has one type of tokens only.
  void require_pairs() const;
  /// Throws Error(Failure::input) beginning with `where` if the model cannot read the sequence.
  void require_readable(const PaddedSequence& given, const std::string& where) const;
};

/// Every parameter of a network with its numbers, and no gradients. Throws Error(Failure::model), before memory is
/// taken, naming the file, the task and the tensors if the head is not there.
nn::ParameterSet load_parameters(const Model& model, Head head, nn::Module& network);

/// A network with its weights and no gradients.
template <class Network>
class Loaded {
 public:
  template <class... Arguments>
  Loaded(const Model& model, Head head, const Arguments&... arguments)
      : network_(model.config, arguments...), parameters_(load_parameters(model, head, network_)) {}
  const Network& operator*() const { return network_; }
  const Network* operator->() const { return &network_; }

 private:
  Network network_;
  nn::ParameterSet parameters_;
};

/// What is the same of all heads.
class ModelPredictor : public Predictor {
 public:
  explicit ModelPredictor(Model model) : model_(std::move(model)) {}
  /// A line is one text.
  io::Json request(std::string_view line, const std::string&) const override { return {{"text", line}}; }
  std::string_view token(std::int32_t id) const final { return model_.tokenizer.vocabulary().token(id); }

 protected:
  const Model model_;
};

/// The rows of `values` [rows, width] dealt out: the first counts[0] are of sequence 0, and so on.
std::vector<Outputs> deal_rows(const Tensor& values, std::span<const std::size_t> counts);

/// The mean of rows of `width` numbers, in double: its bits do not depend on the order of a device's sum. With `unit`
/// it has length 1, as after torch.nn.functional.normalize, which leaves a vector of zeros as it is.
std::vector<double> mean_of_rows(std::span<const float> rows, std::size_t width, bool unit);

/// The number of tokens of each sequence.
std::vector<std::size_t> lengths(std::span<const bert::Sequence> sequences);

/// A number as an f32, in digits that read back to it, nearly always the shortest.
io::Json json_number(double value);
/// A list of them.
io::Json json_numbers(std::span<const double> values);

std::unique_ptr<Predictor> make_classifier(Model model);
std::unique_ptr<Predictor> make_chooser(Model model);
std::unique_ptr<Predictor> make_token_labeller(Model model, const Options& options);
std::unique_ptr<Predictor> make_answerer(Model model, const Options& options);
std::unique_ptr<Predictor> make_mask_filler(Model model, const Options& options);
std::unique_ptr<Predictor> make_embedder(Model model, const Options& options);

}  // namespace bertrand::inference
