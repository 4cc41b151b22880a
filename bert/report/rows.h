// The rows of an evaluation as they are read back.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bert/tasks/class_figures.h"
#include "bert/tasks/evaluation_rows.h"
#include "bert/tasks/task.h"
#include "io/json.h"

namespace bertrand::report {

/// One row, as small as figures allow: there may be very many. What lists show is read again, by shown_of().
struct Row {
  std::string_view line;  ///< of the file
  std::int64_t tokens = 0;
  double target = 0, score = 0;  ///< of regression: what is true, and what the model says
  double loss = 0;               ///< of this row alone
  double doubt = 0;              ///< 1 − the distance between the two likeliest classes, or of a label from one half
  std::size_t first = 0;         ///< of its numbers in Rows::numbers: those of `truths` labels, then of `predictions`
  std::uint32_t truths = 0, predictions = 0;
  bool right = false;  ///< but for regression: whether the model says what is true
};

/// Ten equal bins of what the model is how sure of.
struct Calibration {
  struct Bin {
    double count = 0, confidence = 0, right = 0;
  };
  std::vector<Bin> bins = std::vector<Bin>(10);

  void add(double probability, bool right);
};

struct Rows {
  tasks::Kind kind = tasks::Kind::classification;
  std::vector<std::string> labels;
  std::vector<tasks::Metric> metrics;  ///< each of the kind
  std::int32_t positive = 1;
  std::vector<Row> rows;
  std::vector<std::int32_t> numbers;  ///< of the labels that rows have, in the order of the rows
  Calibration calibration;
  std::int64_t given = 0;  ///< rows of the evaluation, of which these are some; 0: it is not known

  /// The labels of a row, ascending: of classes one, of several labels any number, of regression none.
  std::span<const std::int32_t> truth(const Row& row) const { return {numbers.data() + row.first, row.truths}; }
  std::span<const std::int32_t> predicted(const Row& row) const {
    return {numbers.data() + row.first + row.truths, row.predictions};
  }
  /// Adds a row that has these labels.
  void add(Row row, std::span<const std::int32_t> truth, std::span<const std::int32_t> predicted);
  /// Counts the labels of a row; a place for each label.
  void count(const Row& row, std::vector<tasks::ClassCounts>& counts) const;
};

/// Called now and then while lines are read, to give back the memory of what was read; may be empty.
using LetGo = std::function<void()>;

/// A line of eval_rows.jsonl: its number, from 1, its text, and its object.
struct Line {
  std::int64_t number;
  std::string_view text;
  io::JsonReader& json;
};

/// Reads the lines of eval_rows.jsonl. Throws Error(Failure::input) naming the line that is damaged, and
/// Error(Failure::interrupted) if a signal asks to leave.
void read_lines(std::string_view lines, const LetGo& let_go, const std::function<void(const Line& line)>& take);
/// A line again that was read before.
io::Json read_again(std::string_view line);
/// The strings of a list.
std::vector<std::string> texts_of(const io::Json& list);

/// Whether these are rows of texts, which read_rows() reads, and not of words or answers.
bool has_texts(std::string_view lines);
/// Throws as read_lines does. The rows look into `lines`.
Rows read_rows(std::string_view lines, const LetGo& let_go = {});

/// What a row has beside its figures.
struct Shown {
  std::string id, text;
  std::optional<std::string> pair;
  std::vector<double> probabilities;  ///< one for each label
};
Shown shown_of(const Row& row);

}  // namespace bertrand::report
