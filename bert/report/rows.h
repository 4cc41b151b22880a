// The rows of an evaluation as they are read back.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "bert/tasks/task.h"
#include "io/json.h"

namespace bertrand::report {

/// One row. Of classes and several labels, `truth` and `predicted` are a 0 or 1 for each label.
struct Row {
  std::string id, text, pair;
  bool has_pair = false;
  std::int64_t tokens = 0;
  double target = 0, score = 0;  ///< of regression: what is true, and what the model says
  std::vector<std::int32_t> truth, predicted;
  std::vector<double> probabilities;
  double loss = 0;  ///< of this row alone
  bool right = false;
};

struct Rows {
  tasks::Kind kind = tasks::Kind::classification;
  std::vector<std::string> labels, metrics;
  std::int32_t positive = 1;
  std::vector<Row> rows;
  std::int64_t given = 0;  ///< rows of the evaluation, of which these are some; 0: it is not known
};

/// Reads the lines of eval_rows.jsonl: `take` gets the number of each, from 1, and its object. Throws
/// Error(Failure::input) naming the line that is damaged.
void read_lines(std::string_view lines, const std::function<void(std::int64_t number, io::JsonReader& line)>& take);
/// The strings of a list.
std::vector<std::string> texts_of(const io::Json& list);

/// Whether these are rows of texts, which read_rows() reads, and not of words or answers.
bool has_texts(std::string_view lines);
/// Throws Error(Failure::input) naming the line that is damaged.
Rows read_rows(std::string_view lines);

/// A text as the page shows it: at most `most` bytes of UTF-8, whole characters.
std::string cut(const std::string& text, std::size_t most = 1000);

/// The class that a row of classes says or is: the first 1.
std::size_t class_of(const std::vector<std::int32_t>& flags);

/// An interval [low, high] for each known figure of `rows` ("eval_loss", "eval_accuracy", …): 95 % of its values lie in
/// it if as many rows are drawn with replacement, again and again. "resamples" is how often they were drawn.
/// The same rows give the same interval.
io::Json intervals(const Rows& rows);

}  // namespace bertrand::report
