// Stored tensors copied into parameters and moments.
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "bert/directory/config_file.h"
#include "bert/directory/google_names.h"
#include "bert/directory/located.h"
#include "bert/directory/model_directory.h"
#include "bert/directory/stored_weights.h"
#include "io/error.h"

namespace bertrand::bert {
namespace {

namespace fs = std::filesystem;

/// The decoder of the masked language model is the word embeddings themselves, and its bias is there under two names;
/// one with numbers of its own is another model.
void check_tied(const StoredWeights& weights) {
  for (const auto& [alias, name] : kAliases) {
    const nn::StoredNumbers *tied = weights.find(alias), *own = weights.find(name);
    if (!tied) continue;
    if (tied->dtype_name != own->dtype_name)
      fail(Failure::model, "{}: expected the numbers of {} (tied), of type {}, got type {}", tied->place, own->name,
           own->dtype_name, tied->dtype_name);
    if (!std::ranges::equal(tied->bytes(), own->bytes()))
      fail(Failure::model, "{}: expected the numbers of {} (tied), got others", tied->place, own->name);
  }
}

/// The tensors that parameters of these names are loaded from, and those that none asks for. A layer beyond the last of
/// the configuration, which would be left out in silence, is refused.
nn::StoredTensors tensors_for(const std::vector<nn::ParameterSet::Segment>& segments, const StoredWeights& weights) {
  std::set<std::string> names;
  for (const auto& segment : segments) names.insert(segment.name);
  nn::StoredTensors stored;
  for (const auto& [name, found] : weights.by_name()) {
    const bool is_wanted = names.contains(name);
    if (!is_wanted && name.starts_with("bert.encoder.layer."))
      fail(Failure::model,
           "{}: expected the encoder of the configuration, which has no such parameter; hint: num_hidden_layers?",
           found.place);
    if (is_wanted || (!is_alias(name) && !name.ends_with("embeddings.position_ids")))
      stored.emplace(name, nn::stored_tensor(found));
  }
  return stored;
}

}  // namespace

nn::LoadReport compare_weights(const fs::path& model, const nn::Module& network,
                               const std::function<bool(const std::string&)>& may_be_mis_shaped) {
  const auto segments = nn::ParameterSet::segments_of(network);
  const StoredWeights weights(model);
  return nn::compare(segments, tensors_for(segments, weights), model.string(), may_be_mis_shaped);
}

nn::LoadReport load_weights(const fs::path& model, nn::ParameterSet& parameters,
                            const std::function<bool(const std::string&)>& may_be_mis_shaped) {
  const StoredWeights weights(model);
  const nn::StoredTensors stored = tensors_for(parameters.segments(), weights);
  if (parameters.find("cls.predictions.bias")) check_tied(weights);
  weights.verify(nn::compare(parameters.segments(), stored, model.string(), may_be_mis_shaped).loaded);
  return nn::load(parameters, stored, model.string(), may_be_mis_shaped);
}

nn::ParameterSet load_for_inference(const fs::path& model, nn::Module& network, Backend& backend,
                                    const InferenceWeights& wanted) {
  const nn::LoadReport report = compare_weights(model, network);
  if (wanted.strict) require_exact(report, model);
  if (wanted.check) wanted.check(report);
  nn::require(report, weights_file(model), [](const std::string&) { return false; });
  // Nothing is initialised, for speed alone: every number is loaded.
  nn::ParameterSet parameters(network, backend, {.dtype = wanted.dtype, .initialize = false, .gradients = false});
  load_weights(model, parameters);
  return parameters;
}

void load_whole(const fs::path& model, nn::ParameterSet& parameters) {
  nn::require(load_weights(model, parameters), model, [](const std::string&) { return false; });
}

void require_finite(const nn::ParameterSet& parameters, const fs::path& model) {
  if (const std::string name = parameters.first_non_finite(parameters.masters()); !name.empty())
    fail(Failure::model, "{}: tensor \"{}\": expected finite numbers, got NaN or infinity; hint: the model is damaged",
         weights_file(model).string(), name);
}

void require_exact(const nn::LoadReport& report, const fs::path& model) {
  const auto refuse = [&](const char* what, const std::vector<std::string>& names) {
    if (!names.empty())
      fail(Failure::model, "{}: --strict: expected every tensor to fit, got {} {}: {}", weights_file(model).string(),
           names.size(), what, nn::joined(names));
  };
  refuse("mis-shaped", report.mis_shaped);
  refuse("missing", report.missing);
  std::vector<std::string> unused = report.unused;
  std::erase_if(unused, is_moment);  // which a checkpoint of a training has beside the weights
  refuse("unused", unused);
}

std::map<std::string, std::vector<std::int64_t>> weight_shapes(const fs::path& model) {
  std::map<std::string, std::vector<std::int64_t>> shapes;
  const StoredWeights weights(model);
  for (const auto& [name, numbers] : weights.by_name()) shapes.emplace(name, numbers.dims);
  return shapes;
}

std::vector<std::string> labels_of(const Config& config, const fs::path& model) {
  if (!config.labels.empty()) return config.labels;
  const StoredWeights weights(model);
  const nn::StoredNumbers *bias = weights.find("classifier.bias"), *weight = weights.find("classifier.weight");
  if (!bias) return numbered_labels(2);
  const std::vector<std::int64_t>& dims = bias->dims;
  if (dims.size() != 1 || dims[0] < 1 || dims[0] > kMostLabels)
    fail(Failure::model, "{}: expected a number for each of 1 to {} labels, got the shape [{}]", bias->place,
         kMostLabels, fmt::join(dims, ", "));
  if (weight && (weight->dims.empty() || weight->dims[0] != dims[0]))
    fail(Failure::model, "{}: expected a row for each of the {} numbers of classifier.bias, got the shape [{}]",
         weight->place, dims[0], fmt::join(weight->dims, ", "));
  return numbered_labels(dims[0]);
}

bool is_checkpoint(const fs::path& model) { return !weight_files(model).checkpoint.empty(); }

bool is_moment(const std::string& stored) {
  return stored.ends_with("/adam_m") || stored.ends_with("/adam_v") || stored == "global_step";
}

void load_moments(const fs::path& model, const nn::Moments& moments) {
  const StoredWeights weights(model);
  std::vector<std::pair<nn::StoredNumbers, Tensor>> loads;
  std::vector<std::string> names;
  for (const auto& [tensors, ending] : {std::pair(&moments.first, "adam_m"), std::pair(&moments.second, "adam_v")})
    for (const auto& [name, tensor] : *tensors) {
      const GoogleName google = google_name(name).value_or(GoogleName{name});
      const std::string slot = fmt::format("{}/{}", google.name, ending);
      const nn::StoredNumbers* found = weights.find(slot);
      if (!found)
        fail(Failure::model,
             "{}: --keep-moments: expected a tensor \"{}\", got none; hint: without --keep-moments the moments begin "
             "at 0",
             weights.path().string(), slot);
      nn::StoredNumbers numbers = *found;
      numbers.transposed = google.transposed && numbers.dims.size() == 2;
      if (numbers.transposed) std::swap(numbers.dims[0], numbers.dims[1]);
      if (!std::ranges::equal(tensor.shape().dims(), numbers.dims))
        fail(Failure::model, "{}: --keep-moments: expected {}, got [{}]", numbers.place, tensor.shape(),
             fmt::join(numbers.dims, ", "));
      names.push_back(slot);
      loads.emplace_back(std::move(numbers), tensor);
    }
  weights.verify(names);
  for (const auto& [numbers, tensor] : loads) nn::load_numbers(numbers, tensor);
}

}  // namespace bertrand::bert
