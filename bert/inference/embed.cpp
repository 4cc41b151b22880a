// A text or a pair of texts as a vector: {"text", "text_pair"} → {"embedding"}; "normalize" says whether its length is
// to be 1.
#include "autograd/ops.h"
#include "bert/inference/model.h"
#include "bert/network/heads.h"
#include "io/error.h"

namespace bertrand::inference {
namespace {

class Embedder : public ModelPredictor {
 public:
  Embedder(Model model, const Options& options)
      : ModelPredictor(std::move(model)),
        pooling_(*options.pooling),
        normalize_(options.normalize),
        network_(model_, Head::embed,
                 pooling_ == Pooling::pooler ? bert::PoolerLayer::present : bert::PoolerLayer::absent) {}

  Query encode(const io::Json& request, const std::string& where) const override {
    io::JsonReader reader(request, {where, Failure::input});
    Model::Input input = model_.text_or_pair(reader, where);
    const bool unit = reader.flag("normalize", normalize_);
    return {.where = where,
            .sequences = {std::move(input.sequence)},
            .cut = input.cut,
            .make_answer = [unit](std::span<const Outputs> outputs) { return embedding(outputs[0], unit); }};
  }

  Query encode_ids(PaddedSequence given, const std::string& where) const override {
    model_.require_readable(given, where);
    return {
        .where = where,
        .sequences = {std::move(given.sequence)},
        .make_answer = [unit = normalize_](std::span<const Outputs> outputs) { return embedding(outputs[0], unit); }};
  }

  /// A row for each token if these are to be averaged, else one.
  std::vector<Outputs> run(std::span<const bert::Sequence> sequences) const override {
    const bool all = pooling_ == Pooling::mean;
    return deal_rows(forward_(sequences), all ? lengths(sequences) : std::vector<std::size_t>(sequences.size(), 1));
  }

 private:
  Variable rows_of(const bert::PackedBatch& batch) const {
    const Variable rows = network_->bert(batch, {}, pooling_ == Pooling::mean ? Tensor() : batch.first_rows);
    return pooling_ == Pooling::pooler ? (*network_->bert.pooler)(rows) : rows;
  }

  static io::Json embedding(const Outputs& outputs, bool unit) {
    return {{"embedding", json_numbers(mean_of_rows(outputs.values, outputs.width, unit))}};
  }

  const Pooling pooling_;
  const bool normalize_;
  const Loaded<bert::EncoderAlone> network_;
  mutable Forward forward_{model_.backend, [this](const auto& batch, const Tensor&) { return rows_of(batch); }};
};

}  // namespace

std::unique_ptr<Predictor> make_embedder(Model model, const Options& options) {
  return std::make_unique<Embedder>(std::move(model), options);
}

}  // namespace bertrand::inference
