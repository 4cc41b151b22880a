// From a model directory to the predictor of its head.
#include "bert/inference/open.h"

#include <algorithm>

#include "bert/directory/tokenizer_config.h"
#include "bert/inference/model.h"
#include "bert/inference/sentence_modules.h"
#include "bert/network/architecture.h"
#include "io/error.h"

namespace bertrand::inference {
namespace {

Head head_of(bert::Architecture architecture) {
  using bert::Architecture;
  switch (architecture) {
    case Architecture::sequence_classification: return Head::classify;
    case Architecture::multiple_choice: return Head::choose;
    case Architecture::token_classification: return Head::tokens;
    case Architecture::question_answering: return Head::answer;
    case Architecture::masked_lm:
    case Architecture::pretraining: return Head::fill_mask;
    case Architecture::encoder: return Head::embed;
  }
  fail(Failure::bug, "head: expected an architecture that is known, got number {}", static_cast<int>(architecture));
}

/// A model that was fine-tuned for one head has no other, though the tensors of another may have the same names: the
/// classifier of texts and that of words do. What it was fine-tuned from is in each.
void require_head(const bert::Config& config, const std::filesystem::path& directory, Head wanted) {
  const auto is_of_encoder = [](Head head) { return head == Head::fill_mask || head == Head::embed; };
  const auto architecture = bert::architecture_of(config);
  if (!architecture || is_of_encoder(wanted)) return;
  for (const auto& [name, listed] : bert::architectures())
    if (head_of(listed) == wanted && std::ranges::count(config.architectures, name) > 0) return;
  if (const Head own = head_of(*architecture); !is_of_encoder(own))
    fail(Failure::model, "{}: architectures: expected a model for --task {}, got {}, which is for --task {}",
         bert::config_file(directory).string(), io::name_in(heads(), wanted), io::shown(config.architectures),
         io::name_in(heads(), own));
}

}  // namespace

const io::Choices<Head>& heads() {
  static const io::Choices<Head> choices{{"classify", Head::classify},   {"choose", Head::choose},
                                         {"tokens", Head::tokens},       {"answer", Head::answer},
                                         {"fill-mask", Head::fill_mask}, {"embed", Head::embed}};
  return choices;
}

const io::Choices<std::optional<Pooling>>& poolings() {
  static const io::Choices<std::optional<Pooling>> choices{
      {"auto", std::nullopt}, {"mean", Pooling::mean}, {"cls", Pooling::cls}, {"pooler", Pooling::pooler}};
  return choices;
}

Head head_of(const bert::Config& config, const std::filesystem::path& directory) {
  if (const auto architecture = bert::architecture_of(config)) return head_of(*architecture);
  fail(Failure::model, "{}: architectures: expected one of {}, got {}; hint: --task says what to do with the model",
       bert::config_file(directory).string(), io::names_of(bert::architectures()),
       config.architectures.empty() ? "none" : io::shown(config.architectures));
}

Options completed(Options options, const bert::Config& config, Head head, const std::filesystem::path& directory) {
  constexpr int kUsualWindow = 384, kUsualQuery = 64, kMarks = 3;  // [CLS], [SEP], [SEP]
  const int positions = static_cast<int>(config.max_position_embeddings);
  bert::require_room_for_text(config, directory);
  if (options.max_seq_length > positions)
    fail(Failure::usage, "--max-seq-length: expected at most {}, the model's positions, got {}", positions,
         options.max_seq_length);
  const bool given = options.max_seq_length > 0;
  if (!given) options.max_seq_length = head == Head::answer ? std::min(kUsualWindow, positions) : positions;
  const int rest = options.max_seq_length - kMarks;
  if (options.windows.max_query_length == 0)
    options.windows.max_query_length = kUsualQuery < rest ? kUsualQuery : rest / 2;
  const std::filesystem::path files = bert::config_file(directory).parent_path();
  if (!given && (head == Head::classify || head == Head::choose))
    options.max_seq_length = static_cast<int>(bert::read_max_length(files, positions).value_or(positions));
  if (head != Head::embed) return options;
  if (!given) options.max_seq_length = read_sentence_length(files, positions);
  if (options.pooling) return options;
  const SentenceModules modules = read_sentence_modules(files, config.hidden_size);
  options.pooling = modules.pooling.value_or(Pooling::mean);
  options.normalize = options.normalize || modules.normalize;
  return options;
}

std::unique_ptr<Predictor> open(const Source& source, Head head, const Options& wanted) {
  bert::Config config = bert::read_config(source.directory);
  require_head(config, source.directory, head);
  if (head == Head::classify || head == Head::tokens) config.labels = bert::labels_of(config, source.directory);
  const Options options = completed(wanted, config, head, source.directory);
  Model model{
      .directory = source.directory,
      .config = config,
      .tokenizer = bert::read_tokenizer(source.directory, source.tokenizer, config),
      .max_length = options.max_seq_length,
      .max_ids = wanted.max_seq_length > 0 ? options.max_seq_length : static_cast<int>(config.max_position_embeddings),
      .backend = source.backend,
      .dtype = source.dtype,
      .strict = source.strict};
  if (head == Head::embed) require_lower_case(bert::config_file(source.directory).parent_path(), model.tokenizer);
  switch (head) {
    case Head::classify: return make_classifier(std::move(model));
    case Head::choose: return make_chooser(std::move(model));
    case Head::tokens: return make_token_labeller(std::move(model), options);
    case Head::answer: return make_answerer(std::move(model), options);
    case Head::fill_mask: return make_mask_filler(std::move(model), options);
    case Head::embed: return make_embedder(std::move(model), options);
  }
  fail(Failure::bug, "predictor: expected a head that is known, got number {}", static_cast<int>(head));
}

}  // namespace bertrand::inference
