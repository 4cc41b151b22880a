#include "apps/prepare/squad.h"

#include <algorithm>

#include "apps/prepare/output.h"
#include "bert/data/tf_example.h"
#include "io/error.h"
#include "io/file_arguments.h"
#include "io/file_replacer.h"
#include "io/say.h"
#include "io/signals.h"
#include "io/tfrecord.h"
#include "io/units.h"

namespace bertrand::prepare {
namespace {

constexpr std::int64_t kFirstId = 1'000'000'000;
constexpr std::size_t kBlock = std::size_t{1} << 20;  // bytes that are written at once

/// Appends windows as records, padded with 0 to one length.
class WindowWriter {
 public:
  explicit WindowWriter(const tasks::SquadOptions& options) : options_(options) {}

  void append(const tasks::SquadWindow& window, std::int64_t id, bool is_impossible, std::string& out) {
    const auto length = static_cast<std::size_t>(options_.max_seq_length), used = window.token_ids.size();
    ids_.assign(length, 0), mask_.assign(length, 0), types_.assign(length, 0);
    std::ranges::copy(window.token_ids, ids_.begin());
    std::fill_n(mask_.begin(), used, 1);
    std::fill(types_.begin() + window.context_begin, types_.begin() + static_cast<std::ptrdiff_t>(used), 1);
    example_.clear();
    add("unique_ids", id);
    example_.add("input_ids", std::span<const std::int32_t>(ids_));
    example_.add("input_mask", std::span<const std::int32_t>(mask_));
    example_.add("segment_ids", std::span<const std::int32_t>(types_));
    if (options_.training) {
      add("start_positions", window.start);
      add("end_positions", window.end);
      add("is_impossible", is_impossible ? 1 : 0);
    }
    message_.clear();
    example_.append_to(message_);
    io::append_record(out, message_);
  }

 private:
  void add(std::string_view name, std::int64_t value) { example_.add(name, std::span<const std::int64_t>(&value, 1)); }

  const tasks::SquadOptions& options_;
  std::vector<std::int32_t> ids_, mask_, types_;
  data::ExampleBuilder example_;
  std::string message_;
};

}  // namespace

void write_squad(const SquadRecordsOptions& options) {
  io::catch_stop_signals(io::OnStop::leave);
  std::vector<std::filesystem::path> inputs = options.tokenizer.files();
  inputs.push_back(options.input);
  io::check_files(inputs, {options.output});
  if (!io::is_replaceable(options.output))
    fail(Failure::usage, "--output: expected a file of its own, got the link, pipe or device {}",
         options.output.string());
  check_output(options.output, options.overwrite);
  const text::Tokenizer tokenizer = load_tokenizer(options.tokenizer);
  options.features.check();
  tasks::SquadOptions named = options.features;
  named.file = options.input.string();

  io::FileReplacer out(io::Files::system(), options.output);
  WindowWriter writer(options.features);
  std::int64_t id = kFirstId;
  std::size_t questions = 0, left_out = 0;
  tasks::QuestionCount empty_answers;
  std::string records;
  const auto write_windows = [&](const tasks::SquadExample& example, std::span<const tasks::SquadWindow> windows) {
    io::leave_if_requested("writing features");
    if (example.answer_is_empty) empty_answers.add(example.question->id);
    for (const tasks::SquadWindow& window : windows) writer.append(window, id++, example.is_impossible, records);
    if (records.size() < kBlock) return;
    out.write(records);
    records.clear();
  };
  const auto walk = [&](const tasks::ParagraphUse& add) { tasks::walk_squad(options.input, add); };
  tasks::walk_features(walk, tokenizer, named, [&](const tasks::SquadFeatures& features) {
    for (const std::string& warning : features.warnings()) io::warn("{}: {}", named.file, warning);
    features.for_windows(write_windows);
    questions += features.examples().size();
    left_out += features.warnings().size();
  });
  if (id == kFirstId)
    fail(Failure::input, "{}: expected at least one question{}, got none", named.file,
         left_out > 0 ? " whose answer is where answer_start says" : "");
  out.write(records);
  out.publish();
  if (empty_answers.count > 0)
    io::warn("{}: questions {}: {}, the first {}", named.file, tasks::kEmptyAnswers, empty_answers.count,
             empty_answers.first);
  io::tell("wrote {} of {}, {} left out", io::counted(id - kFirstId, "feature"), io::counted(questions, "question"),
           left_out);
}

}  // namespace bertrand::prepare
