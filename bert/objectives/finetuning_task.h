// A task of fine-tuning: its files as the model reads them, its loss, its figures, and the files that it writes.
#pragma once
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "bert/directory/model_directory.h"
#include "bert/network/heads.h"
#include "bert/tasks/encode.h"
#include "bert/tasks/figures.h"
#include "bert/tasks/metrics.h"
#include "training/step/objective.h"

namespace bertrand::objectives {

/// The files of a run.
enum class File { train, evaluation, prediction };

/// The examples of a file that is read part by part, because it may be larger than memory.
class ExampleStream {
 public:
  virtual ~ExampleStream() = default;
  /// Goes on to the next part. Returns how many examples it has; 0 at the end. Throws Failure::input if the file is not
  /// what it was when the task was made.
  virtual std::int64_t next_part() = 0;
  /// The examples `share` of the part, encoded.
  virtual tasks::EncodedDataset encode(const distributed::Share& share) = 0;
};

/// What is known of such a file before it is read.
struct StreamedFile {
  std::int64_t examples = 0;
  std::int64_t most_tokens = 0;  ///< of an example
  /// Opens it for one replica. A part has `part` examples, the last one the rest.
  std::function<std::unique_ptr<ExampleStream>(std::int64_t part)> open;
};

/// Lies on the host for all replicas of a process. Nothing changes it after decide_by(), which comes before they begin.
/// Examples have their numbers in their file.
class FineTuningTask {
 public:
  virtual ~FineTuningTask() = default;

  /// What is written beside the weights. Its config names the architecture, the labels and the problem type.
  bert::DirectoryFiles directory() const {
    return {.config = config_, .vocabulary = tokenizer_.vocabulary().text(), .tokenizer = tokenizer_.options()};
  }
  /// Without memory until a ParameterSet gives it some.
  virtual std::unique_ptr<bert::TaskModel> make_model() const = 0;
  /// What the names of the head's own parameters begin with. A model that was trained for something else lacks them.
  virtual std::string_view head() const { return "classifier."; }

  /// How many sequences an example is that is learnt from as a whole: of multiple choice one for each choice. They
  /// follow each other in examples().
  virtual std::int64_t sequences_of_example() const { return 1; }
  /// The sequences of a file as the model reads them; null if the run has no such file or it is streamed.
  virtual const tasks::EncodedDataset* examples(File file) const = 0;
  /// A file of the run that is read part by part. The file to train on never is: its examples are held, or on the disk
  /// if they are many.
  virtual std::optional<StreamedFile> streamed(File) const { return std::nullopt; }

  /// What the task holds on the host beside its examples, in bytes, as the plan counts it.
  virtual std::size_t other_bytes() const { return 0; }

  /// What the losses of a step of these examples are divided by.
  virtual double divisor(std::span<const std::int64_t> numbers) const { return static_cast<double>(numbers.size()); }
  /// The loss of examples `numbers` of the training file, whose sequences are those of `batch`, [1].
  virtual Variable loss(const Variable& outputs, const bert::PackedBatch& batch, std::span<const std::int64_t> numbers,
                        double divisor) const = 0;

  /// The figures of the evaluation file, names beginning with eval_.
  virtual training::Metrics evaluate(const tasks::Logits& outputs) const = 0;
  /// What these figures say, but for some that decide nothing, and which of them decide by themselves.
  virtual std::vector<tasks::Figure> figures() const = 0;
  /// The same after decide_by().
  std::vector<tasks::Figure> judged_by() const;
  /// From now on the figure of this name decides; "": those that decide by themselves. Throws Failure::usage, which
  /// lists them, if there is none of this name.
  void decide_by(const std::string& figure);
  /// What the best model is chosen by, higher is better: the mean of the figures that decide.
  double score(const training::Metrics& evaluation) const;
  /// Writes what there is to say about the evaluation beside its figures.
  virtual void write_evaluation(io::Files&, const std::filesystem::path& /*directory*/, const tasks::Logits&) const {}
  /// A row of the evaluation file in words.
  struct Sample {
    std::string text, truth, prediction;
  };
  /// What the model says of at most `most` rows, which are spread evenly over the file and always the same; none if
  /// rows of the task are no single texts.
  virtual std::vector<Sample> samples(const tasks::Logits&, std::size_t /*most*/) const { return {}; }
  /// Writes the predictions for the file to predict. Returns a line for people.
  virtual std::string write_predictions(io::Files& files, const std::filesystem::path& directory,
                                        const tasks::Logits& outputs) const = 0;

  /// For people, how many examples of the training file have which class; "" if there are no classes.
  virtual std::string rows_of_classes() const { return ""; }
  /// For people, which columns are read; "" if the task says it.
  virtual std::string columns() const { return ""; }
  /// Lines for people about what was left out of the files or is wrong in them, and about what was cut.
  virtual std::string warnings() const = 0;
  virtual std::string remarks() const = 0;
  /// What is wrong with rows of the files, a line each, if they were kept apart.
  virtual std::vector<std::string> bad_rows() const { return {}; }

 protected:
  /// `config` is as it is to be written. The tokenizer must outlive the task.
  FineTuningTask(bert::Config config, const text::Tokenizer& tokenizer)
      : config_(std::move(config)), tokenizer_(tokenizer) {}

  const bert::Config config_;
  const text::Tokenizer& tokenizer_;

 private:
  std::string decisive_;
};

/// The value of a metric that must be there.
double metric(const training::Metrics& metrics, std::string_view name);

}  // namespace bertrand::objectives
