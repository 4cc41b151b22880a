// A trained model that answers. A request becomes sequences, the network computes outputs for each of them, and these
// become one JSON answer. The steps are apart, so that the sequences of many requests can share batches:
//
//   a line of text ──request()──┐
//   a JSON object ──────────────┴─encode()──▶ Query ──sequences──▶ run() ──Outputs──▶ answer() ──▶ JSON
//
// The bits of a sequence's outputs do not depend on the others of its batch, so neither does an answer.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bert/network/packed_batch.h"
#include "io/json.h"

namespace bertrand::inference {

/// What a network says of one sequence: one row, or a row for each of its tokens or masks.
struct Outputs {
  std::size_t width = 0;
  std::vector<float> values;  ///< [rows, width]

  std::size_t rows() const { return values.size() / width; }
  std::span<const float> row(std::size_t i) const { return {values.data() + i * width, width}; }
};

/// Ids of the model's own, [CLS] and [SEP] among them. `padding` places behind them are not read, but have outputs.
struct PaddedSequence {
  bert::Sequence sequence;
  std::size_t padding = 0;
};

/// The most memory that a word takes while the answer for it is made: an object with its label, its place and its text.
inline constexpr std::size_t kWordBytes = 1600;

/// A request that was read. Its predictor must outlive it.
struct Query {
  std::string where;                      ///< the request's place, which begins messages: FILE:LINE
  std::vector<bert::Sequence> sequences;  ///< at least one
  std::size_t words = 0;                  ///< for each of which the answer has an object
  std::size_t padding = 0;                ///< for each place of which the answer has numbers
  bool cut = false;                       ///< whether a text was longer than the model reads and lost its end
  std::function<io::Json(std::span<const Outputs>)> make_answer;  ///< from the outputs for each sequence; see answer()
};

/// encode() may be called from any thread, run() from one at a time.
class Predictor {
 public:
  virtual ~Predictor() = default;

  /// The request that a line of text in valid UTF-8 is short for. Throws Error(Failure::input) beginning with `where`.
  virtual io::Json request(std::string_view line, const std::string& where) const = 0;
  /// Reads a request, a JSON object with the keys of this head; others are passed over. Throws Error(Failure::input)
  /// beginning with `where`: a key that is missing or of another kind, a text without a token.
  virtual Query encode(const io::Json& request, const std::string& where) const = 0;
  /// Takes ids. Its answer has what the network says, by name: "probabilities" (of a regression "logits") for each
  /// label, and of tokens for each of them; "start_logits" and "end_logits" for each token; "masks"; "embedding". What
  /// is for each token is for each place of the padding too: the probability 0, the logit -10000, which BERT adds to
  /// what a mask hides. Throws Error(Failure::input) beginning with `where`: no ids, more places than the model reads,
  /// an id or a type out of range, no [MASK] where one is asked for.
  virtual Query encode_ids(PaddedSequence given, const std::string& where) const = 0;
  /// The word piece that an id of the vocabulary stands for.
  virtual std::string_view token(std::int32_t id) const = 0;
  /// The outputs for each sequence, nothing dropped out.
  virtual std::vector<Outputs> run(std::span<const bert::Sequence> sequences) const = 0;
};

/// The answer to a query from the outputs for each of its sequences. Throws Error(Failure::numerics) if one of them is
/// not finite.
io::Json answer(const Query& query, std::span<const Outputs> outputs);

/// Runs the sequences of all queries, and takes them out of these. Sequences of like length share a batch of at most
/// `max_tokens` tokens (a longer one has a batch of its own). `take` gets the outputs for the sequences of each query
/// with its number as soon as they are there, which is not the order of the queries. `before_batch`, called before each
/// batch, may throw to end it.
void run_all(
    const Predictor& predictor, std::span<Query> queries, std::int64_t max_tokens,
    const std::function<void(std::size_t query, std::span<const Outputs> outputs)>& take,
    const std::function<void()>& before_batch = [] {});

}  // namespace bertrand::inference
