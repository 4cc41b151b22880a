#include "bert/tasks/squad_data.h"

#include <fmt/format.h>

#include <algorithm>

#include "bert/tasks/attempt.h"
#include "io/error.h"
#include "io/in_order.h"
#include "io/say.h"
#include "io/units.h"

namespace bertrand::tasks {
namespace {

constexpr std::size_t kShown = 10;  // warnings of one kind

/// The windows of a question, whose tokens begin at `first_token` of the logits.
std::vector<ScoredWindow> scored(const SquadFeatures& features, const SquadExample& example, const Logits& logits,
                                 std::int64_t first_token, text::CachingTokenizer& caching) {
  std::vector<SquadWindow> windows;
  features.windows(example, caching, windows);
  std::vector<ScoredWindow> all;
  auto token = static_cast<std::size_t>(first_token);
  for (SquadWindow& window : windows) {
    const std::size_t end = token + window.token_ids.size();
    ScoredWindow scored{.window = std::move(window), .start = {}, .end = {}};
    for (; token < end; ++token) {
      scored.start.push_back(logits.row(token)[0]);
      scored.end.push_back(logits.row(token)[1]);
    }
    all.push_back(std::move(scored));
  }
  return all;
}

SquadOptions options_of(SquadOptions options, const std::filesystem::path& file, SquadUse use) {
  options.file = file.string();
  options.training = use == SquadUse::training;
  options.check();
  return options;
}

}  // namespace

SquadData::SquadData(const std::filesystem::path& file, SquadUse use, const text::Tokenizer& tokenizer,
                     SquadOptions options, std::vector<std::string>* bad, const io::SpillPlace& spill,
                     const ParagraphFilter& wanted)
    : use_(use),
      tokenizer_(tokenizer),
      options_(options_of(std::move(options), file, use)),
      spill_(spill),
      paragraphs_(spill),
      windows_(spill) {
  const auto walk = [&](const ParagraphUse& add) {
    const auto keep_and_add = [&](SquadParagraph&& paragraph) {
      if (use != SquadUse::training) keep(paragraph, bad);
      add(std::move(paragraph));
    };
    walk_squad(file, keep_and_add, wanted);
  };
  walk_features(
      walk, tokenizer, options_, [&](const SquadFeatures& features) { encode(features); }, bad);
  windows_.finish();
  paragraphs_.finish();
  first_tokens_.finish(spill);
  if (windows_.size() == 0 && bad && !bad->empty()) throw OnlyBadRows(*bad);
  if (windows_.size() == 0)
    fail(Failure::input, "{}: data: expected at least one question about a text, got none", options_.file);
  warnings_ = make_warnings();
}

/// What is missing here would only be found after the training.
void SquadData::check_truth(const SquadQuestion& question) const {
  if (options_.version_2 && !question.is_impossible)
    fail(Failure::input, "{}: question {}: is_impossible: expected true or false, as in SQuAD 2.0, got none",
         options_.file, question.id);
  if (!options_.version_2 && question.answers.empty())
    fail(Failure::input, "{}: question {}: answers: expected at least one, got none; hint: is it SQuAD 2.0?",
         options_.file, question.id);
}

void SquadData::keep(const SquadParagraph& paragraph, std::vector<std::string>* bad) {
  paragraphs_.add(paragraph);
  if (use_ != SquadUse::evaluation) return;
  for (const SquadQuestion& question : paragraph.questions) {
    attempt(bad, [&] { check_truth(question); });
    (question.answers.empty() ? some_without_ : some_answer_) = true;
  }
}

void SquadData::encode(const SquadFeatures& features) {
  questions_ += std::ssize(features.examples());
  left_out_count_ += features.warnings().size();
  for (const std::string& warning : features.warnings())
    if (left_out_.size() < kShown) left_out_.push_back(warning);
  features.for_windows([&](const SquadExample& example, std::span<const SquadWindow> windows) {
    const SquadQuestion& question = *example.question;
    if (windows.empty()) without_text_.add(question.id);
    else if (windows.front().context_begin == 2) without_question_.add(question.id);  // [CLS] [SEP]
    if (question.is_impossible.value_or(false)) impossible_.add(question.id);
    if (example.answer_is_empty) empty_answers_.add(question.id);
    if (use_ != SquadUse::training) {
      first_tokens_.push_back(windows_.token_ids.size());
      first_tokens_.spill_if_due(spill_);
    }
    for (const SquadWindow& window : windows) {
      windows_.token_ids.append(window.token_ids);
      windows_.end_example(window.context_begin);
      windows_.cut += window.cut_question && window.number == 0;
      if (use_ != SquadUse::training) continue;
      windows_.targets.push_back(window.start);
      windows_.targets.push_back(window.end);
    }
  });
}

void SquadData::answer(const Logits& logits, const AnswerOptions& options, const AnswerUse& use) const {
  const std::span<const std::int64_t> first_tokens = first_tokens_.all();
  std::size_t answered = 0;  // questions of the parts before
  const auto answer_part = [&](const SquadFeatures& features) {
    const std::vector<SquadExample>& examples = features.examples();
    const auto make = [&](std::size_t first, std::size_t end) {
      text::CachingTokenizer caching(tokenizer_);
      std::vector<Answer> answers;
      for (std::size_t i = first; i < end; ++i)
        answers.push_back(best_answer(features.context(examples[i]),
                                      scored(features, examples[i], logits, first_tokens[answered + i], caching),
                                      tokenizer_, options));
      return answers;
    };
    std::size_t i = 0;
    io::in_order({.count = examples.size(), .threads = options_.threads}, make, [&](const std::vector<Answer>& part) {
      for (const Answer& answer : part) {
        const SquadExample& example = examples[i++];
        use(features.paragraph(example), *example.question, answer);
      }
    });
    answered += examples.size();
    logits.values.let_go();  // for memory alone
  };
  walk_features([&](const ParagraphUse& add) { paragraphs_.for_each(add); }, tokenizer_, options_, answer_part);
}

std::string SquadData::make_warnings() const {
  std::string text;
  const auto warn = [&](const std::string& line) { text += io::warning("{}: {}", options_.file, line); };
  for (const std::string& question : left_out_) warn(question);
  if (left_out_count_ > 0)
    warn(fmt::format("left out {} of {} questions, whose answers are not where answer_start says", left_out_count_,
                     left_out_count_ + static_cast<std::size_t>(questions_)));
  const auto warn_of = [&](const QuestionCount& count, std::string_view what) {
    if (count.count > 0) warn(fmt::format("questions {}: {}, the first {}", what, count.count, count.first));
  };
  warn_of(empty_answers_, kEmptyAnswers);
  warn_of(without_question_, "without a word");
  warn_of(without_text_, "about a context without a word");
  if (!options_.version_2) warn_of(impossible_, "that have no answer, which version 1 answers all the same");
  return text;
}

std::string SquadData::remarks() const {
  std::string text =
      fmt::format("{}: {} in {} of at most {} tokens\n", options_.file, io::counted(questions_, "question"),
                  io::counted(windows_.size(), "window"), options_.max_seq_length);
  if (windows_.cut > 0)
    text += fmt::format("{}: {} cut to --max-query-length\n", options_.file, io::counted(windows_.cut, "question"));
  return text;
}

}  // namespace bertrand::tasks
