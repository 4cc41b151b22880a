// The words that may stand for each [MASK] of a text: {"text"} → {"masks": [{"position", "predictions"}]}.
#include <algorithm>

#include "autograd/ops.h"
#include "bert/inference/model.h"
#include "bert/network/heads.h"
#include "bert/tasks/metrics.h"
#include "bert/text/utf8.h"
#include "io/error.h"

namespace bertrand::inference {
namespace {

constexpr std::string_view kMask = "[MASK]";

struct Mask {
  std::int64_t position;              ///< among the tokens, [CLS] being 0
  std::optional<std::int64_t> start;  ///< in code points of the text, if there is one
};

class MaskFiller : public ModelPredictor {
 public:
  MaskFiller(Model model, const Options& options)
      : ModelPredictor(std::move(model)), top_k_(options.top_k), network_(model_, Head::fill_mask) {}

  Query encode(const io::Json& request, const std::string& where) const override {
    io::JsonReader reader(request, {where, Failure::input});
    const std::string text = reader.text("text");
    std::vector<std::int32_t> pieces;
    std::vector<Mask> masks;
    std::int64_t place = 0;  // of `begin`, in code points
    // Only [MASK] is literal: another special token in a text from elsewhere could end the sequence.
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t at = std::min(text.find(kMask, begin), text.size());
      std::ranges::copy(model_.tokenizer.encode(std::string_view(text).substr(begin, at - begin)),
                        std::back_inserter(pieces));
      place += text::count_code_points(std::string_view(text).substr(begin, at - begin));
      if (at < text.size()) {
        masks.push_back({std::ssize(pieces) + 1, place});
        place += std::ssize(kMask);
        pieces.push_back(model_.tokenizer.vocabulary().mask_id());
      }
      begin = at + kMask.size();
    }
    if (masks.empty()) fail(Failure::input, "{}: text: expected {}, got none", where, kMask);
    if (masks.back().position > model_.max_length - 2)
      fail(Failure::input, "{}: text: expected {} among the first {} tokens, got it as token {}; hint: a shorter text",
           where, kMask, model_.max_length - 2, masks.back().position);
    Model::Input input = model_.input(std::move(pieces));
    return {.where = where,
            .sequences = {std::move(input.sequence)},
            .cut = input.cut,
            .make_answer = [this, masks](std::span<const Outputs> outputs) { return filled(masks, outputs[0]); }};
  }

  Query encode_ids(PaddedSequence given, const std::string& where) const override {
    model_.require_readable(given, where);
    bert::Sequence& sequence = given.sequence;
    std::vector<Mask> masks;
    for (std::size_t i = 0; i < sequence.token_ids.size(); ++i)
      if (sequence.token_ids[i] == model_.tokenizer.vocabulary().mask_id())
        masks.push_back({.position = static_cast<std::int64_t>(i), .start = {}});
    if (masks.empty()) fail(Failure::input, "{}: input_ids: expected {}, got none", where, kMask);
    return {.where = where,
            .sequences = {std::move(sequence)},
            .make_answer = [this, masks](std::span<const Outputs> outputs) { return filled(masks, outputs[0]); }};
  }

  /// A row of the vocabulary for each mask.
  std::vector<Outputs> run(std::span<const bert::Sequence> sequences) const override {
    std::vector<std::int32_t> masked;
    std::vector<std::size_t> counts;
    std::int32_t row = 0;
    for (const bert::Sequence& sequence : sequences) {
      const std::size_t before = masked.size();
      for (const std::int32_t id : sequence.token_ids) {
        if (id == model_.tokenizer.vocabulary().mask_id()) masked.push_back(row);
        ++row;
      }
      counts.push_back(masked.size() - before);
    }
    check(!masked.empty(), "fill-mask: expected a [MASK], got none");  // Forward would take no rows for all rows
    return deal_rows(forward_(sequences, masked), counts);
  }

 private:
  Variable logits(const bert::PackedBatch& batch, const Tensor& masked) const {
    return network_->predictions(network_->bert(batch, {}, masked), network_->bert.embeddings.word_embeddings.weight);
  }

  io::Json filled(const std::vector<Mask>& masks, const Outputs& outputs) const {
    io::Json all = io::Json::array();
    for (std::size_t i = 0; i < masks.size(); ++i) {
      io::Json mask{{"position", masks[i].position}};
      if (masks[i].start) {
        mask["start"] = *masks[i].start;
        mask["end"] = *masks[i].start + std::ssize(kMask);
      }
      mask["predictions"] = words(outputs.row(i));
      all.push_back(std::move(mask));
    }
    return {{"masks", std::move(all)}};
  }

  io::Json words(std::span<const float> logits) const {
    const text::Vocabulary& vocabulary = model_.tokenizer.vocabulary();
    const std::vector<double> shares = tasks::softmax(logits);
    // Rows that only pad the table of word embeddings stand for no token.
    const auto named = std::span(shares).first(std::min(shares.size(), static_cast<std::size_t>(vocabulary.size())));
    io::Json best = io::Json::array();
    for (const std::size_t id : tasks::largest(named, static_cast<std::size_t>(top_k_)))
      best.push_back({{"token", vocabulary.token(static_cast<std::int32_t>(id))}, {"score", json_number(shares[id])}});
    return best;
  }

  const int top_k_;
  const Loaded<bert::ForMaskedLm> network_;
  mutable Forward forward_{model_.backend,
                           [this](const auto& batch, const Tensor& masked) { return logits(batch, masked); }};
};

}  // namespace

std::unique_ptr<Predictor> make_mask_filler(Model model, const Options& options) {
  return std::make_unique<MaskFiller>(std::move(model), options);
}

}  // namespace bertrand::inference
