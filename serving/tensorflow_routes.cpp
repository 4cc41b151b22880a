// The paths under /v1/, and what is told about a model.
#include <algorithm>

#include "io/ascii.h"
#include "io/numbers.h"
#include "serving/tensorflow.h"

namespace bertrand::serving::tensorflow {
namespace {

using io::Json;

/// /v1/models/NAME[/versions/N|/labels/L] and what follows.
struct Path {
  std::string name, version, label, rest;
};

[[noreturn]] void malformed(const Request& request) {
  refuse(400, "Malformed request: {} {}", request.method, request.target);
}

/// Takes `beginning` and the segment after it off `rest`; "" if it does not begin so.
std::string take_segment(std::string_view& rest, std::string_view beginning) {
  if (!starts_with_any_case(rest, beginning)) return "";
  const std::string_view behind = rest.substr(beginning.size());
  const std::size_t end = std::min(behind.find_first_of("/:"), behind.size());
  if (end > 0) rest = behind.substr(end);
  return std::string(behind.substr(0, end));
}

Path read_path(const Request& request) {
  std::string_view rest = path_of(request.target);
  constexpr std::string_view kModels = "/v1/models";
  if (!starts_with_any_case(rest, kModels)) malformed(request);
  rest.remove_prefix(kModels.size());
  Path path;
  // /v1/models/metadata is a model of that name, as in the regular expression there.
  path.name = percent_decoded(take_segment(rest, "/"));
  path.version = take_segment(rest, "/versions/");
  if (path.version.empty()) path.label = percent_decoded(take_segment(rest, "/labels/"));
  path.rest = io::ascii_lower(std::string(rest));
  if (path.version.find_first_not_of("0123456789") != std::string::npos) malformed(request);
  return path;
}

ModelPointer find(const Models& models, const Path& path, bool is_status) {
  if (!path.label.empty()) refuse(400, "Unrecognized servable version label: {}", path.label);
  const ModelPointer model = models.find(path.name);
  if (path.version.empty()) {
    if (model) return model;
    if (is_status) refuse(404, "Could not find any versions of model {}", path.name);
    refuse(404, "Servable not found for request: Latest({})", path.name);
  }
  const auto version = io::whole_number(path.version);
  if (!version) refuse(400, "Failed to convert version: {} to numeric.", path.version);
  if (model && model->version() == *version) return model;
  if (is_status) refuse(404, "Could not find version {} of model {}", *version, path.name);
  refuse(404, "Servable not found for request: Specific({}, {})", path.name, *version);
}

Json tensor(const std::string& name, const char* type, std::size_t dimensions, std::int64_t last) {
  Json shape = Json::array();
  for (std::size_t i = 0; i < dimensions; ++i)
    shape.push_back({{"size", i + 1 == dimensions ? std::to_string(last) : "-1"}, {"name", ""}});
  return {
      {"dtype", type}, {"tensor_shape", {{"dim", std::move(shape)}, {"unknown_rank", false}}}, {"name", name + ":0"}};
}

Json outputs_of(const ServedModel& model) {
  using inference::Head;
  const auto labels = std::ssize(model.labels());
  switch (model.head()) {
    case Head::classify: return {{model.scores_name(), tensor(model.scores_name(), "DT_FLOAT", 2, labels)}};
    case Head::choose: return {{"logits", tensor("logits", "DT_FLOAT", 2, 1)}};
    case Head::tokens: return {{"probabilities", tensor("probabilities", "DT_FLOAT", 3, labels)}};
    case Head::answer:
      return {{"start_logits", tensor("start_logits", "DT_FLOAT", 2, -1)},
              {"end_logits", tensor("end_logits", "DT_FLOAT", 2, -1)}};
    case Head::fill_mask: return {{"masks", tensor("masks", "DT_STRING", 2, -1)}};
    case Head::embed: return {{"embedding", tensor("embedding", "DT_FLOAT", 2, model.config().hidden_size)}};
  }
  return Json::object();
}

}  // namespace

std::string status_text(const ServedModel& model) {
  const Json status = {
      {"model_version_status", Json::array({{{"version", std::to_string(model.version())},
                                             {"state", "AVAILABLE"},
                                             {"status", {{"error_code", "OK"}, {"error_message", ""}}}}})}};
  return io::json_text(status, 1) + "\n";
}

std::string metadata_text(const ServedModel& model) {
  Json inputs = Json::object();
  for (const char* name : {"input_ids", "input_mask", "segment_ids"}) inputs[name] = tensor(name, "DT_INT32", 2, -1);
  const Json spec = {{"name", model.name()}, {"signature_name", ""}, {"version", std::to_string(model.version())}};
  const Json signature = {
      {"inputs", inputs}, {"outputs", outputs_of(model)}, {"method_name", "tensorflow/serving/predict"}};
  const Json all = {{"model_spec", spec},
                    {"metadata", {{"signature_def", {{"signature_def", {{"serving_default", signature}}}}}}}};
  return io::json_text(all, 1) + "\n";
}

Plan plan(const Request& request, const Models& models, std::size_t max_texts) {
  const Path path = read_path(request);
  if (request.method == "POST") {
    const bool is_known = path.rest == ":predict" || path.rest == ":classify" || path.rest == ":regress";
    if (path.name.empty() || !is_known) malformed(request);
    const ModelPointer model = find(models, path, false);
    if (path.rest != ":predict")
      refuse(501, "expected :predict, got {}; hint: its answer has the probability of each label", path.rest);
    return predict(model, request.body, max_texts);
  }
  const bool is_metadata = path.rest == "/metadata";
  if (request.method != "GET" || (!path.rest.empty() && !is_metadata)) malformed(request);
  if (path.name.empty()) refuse(400, "Missing model name in request.");
  const ModelPointer model = find(models, path, !is_metadata);
  return Response{.body = is_metadata ? metadata_text(*model) : status_text(*model)};
}

}  // namespace bertrand::serving::tensorflow
