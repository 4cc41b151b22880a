// The network found and loaded.
#include "apps/export/model.h"

#include "bert/directory/tokenizer_config.h"
#include "io/error.h"
#include "io/json.h"
#include "tensor/backends.h"

namespace bertrand::exporting {
namespace {

using bert::Architecture;
using Shapes = std::map<std::string, std::vector<std::int64_t>>;

constexpr const char* kPooler = "bert.pooler.dense.weight";

/// What config.json says, or what the tensors are if it says nothing, as Google's.
Architecture architecture_of(const bert::Config& config, const std::filesystem::path& model, const Shapes& shapes) {
  if (const auto named = bert::architecture_of(config)) return *named;
  if (!config.architectures.empty())
    fail(Failure::model, "{}: architectures: expected one of {}, got {}", bert::config_file(model).string(),
         io::names_of(bert::architectures()), io::shown(config.architectures));
  if (shapes.contains("cls.seq_relationship.weight")) return Architecture::pretraining;
  if (shapes.contains("cls.predictions.transform.dense.weight")) return Architecture::masked_lm;
  if (shapes.contains("qa_outputs.weight")) return Architecture::question_answering;
  if (!shapes.contains("classifier.weight")) return Architecture::encoder;
  return shapes.contains(kPooler) ? Architecture::sequence_classification : Architecture::token_classification;
}

bert::PoolerLayer pooler_layer_of(Architecture architecture, const Shapes& shapes) {
  const bool has_one = architecture == Architecture::sequence_classification ||
                       architecture == Architecture::multiple_choice || architecture == Architecture::pretraining ||
                       (architecture == Architecture::encoder && shapes.contains(kPooler));
  return has_one ? bert::PoolerLayer::present : bert::PoolerLayer::absent;
}

}  // namespace

Model read_model(const Source& source) {
  bert::Config config = bert::read_config(source.model);
  text::Tokenizer tokenizer = bert::read_tokenizer(source.model, source.tokenizer, config);
  const Shapes shapes = bert::weight_shapes(source.model);
  const Architecture architecture = architecture_of(config, source.model, shapes);
  config.architectures = {io::name_in(bert::architectures(), architecture)};
  if (bert::has_labels(architecture)) config.labels = bert::labels_of(config, source.model);
  const bert::NetworkOptions network{.outputs = std::ssize(config.labels),
                                     .pooler_layer = pooler_layer_of(architecture, shapes)};
  const auto max_length =
      bert::read_max_length(bert::config_file(source.model).parent_path(), config.max_position_embeddings);
  Model model{.source = source.model,
              .config = std::move(config),
              .architecture = architecture,
              .pooler_layer = network.pooler_layer,
              .tokenizer = std::move(tokenizer),
              .max_length = max_length,
              .backend = open_cpu()};
  model.network = bert::make_network(architecture, model.config, network);
  nn::LoadReport report;
  model.parameters = std::make_unique<nn::ParameterSet>(
      bert::load_for_inference(source.model, *model.network, *model.backend,
                               {.strict = source.strict, .check = [&](const auto& found) { report = found; }}));
  bert::require_finite(*model.parameters, source.model);
  std::fputs((report.text() + "\n").c_str(), stderr);
  return model;
}

}  // namespace bertrand::exporting
