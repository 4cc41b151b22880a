// infer: tensors of texts or ids become queries, and answers become tensors.
#include "serving/kserve.h"

#include <algorithm>
#include <span>

#include "io/error.h"
#include "io/split.h"
#include "io/version.h"

namespace bertrand::serving::kserve {
namespace {

constexpr std::size_t kMostTensors = 16;  // every row looks through all of them

using io::Json;

/// An input of a request. Its numbers or texts lie in one list, row by row.
struct Tensor {
  std::string name, type, shape;  ///< the shape as the request has it
  std::size_t dimensions = 0, rows = 0, width = 0;
  std::vector<Json> data;
};

bool is_nested_as(const Json& data, std::span<const std::size_t> shape) {
  if (shape.empty()) return !data.is_array();
  return data.is_array() && data.size() == shape[0] &&
         std::ranges::all_of(data, [&](const Json& each) { return is_nested_as(each, shape.subspan(1)); });
}

void flatten(const Json& data, std::vector<Json>& flat) {
  for (const Json& each : data) {
    if (each.is_array()) flatten(each, flat);
    else flat.push_back(each);
  }
}

Tensor read_tensor(const Json& json) {
  io::JsonReader reader(json, {"inputs", Failure::input});
  Tensor tensor{.name = reader.text("name"), .type = reader.text("datatype")};
  const Json& shape = reader.list("shape");
  std::vector<std::size_t> dimensions;
  for (const Json& dimension : shape) {
    constexpr std::size_t kMost = 1 << 24;
    if (!dimension.is_number_unsigned() || dimension > kMost)
      refuse(400, "inputs: {}: shape: expected whole numbers, at most {}, got {}", tensor.name, kMost,
             io::shown(shape));
    dimensions.push_back(dimension.get<std::size_t>());
  }
  if (dimensions.empty() || dimensions.size() > 2)
    refuse(400, "inputs: {}: shape: expected one or two dimensions, got {}", tensor.name, io::shown(shape));
  const Json& data = reader.list("data");
  const bool is_nested = std::ranges::any_of(data, [](const Json& each) { return each.is_array(); });
  if (is_nested && !is_nested_as(data, dimensions))
    refuse(400, "inputs: {}: data: expected values in one list, or in lists as shape {} says, got {}", tensor.name,
           io::shown(shape), io::shown(data));
  tensor.shape = io::shown(shape);
  tensor.dimensions = dimensions.size();
  tensor.rows = dimensions[0];
  tensor.width = dimensions.size() == 2 ? dimensions[1] : 1;
  flatten(data, tensor.data);
  if (tensor.data.size() != tensor.rows * tensor.width)
    refuse(400, "inputs: {}: data: expected {} values as shape {} says, got {}", tensor.name,
           tensor.rows * tensor.width, io::shown(shape), tensor.data.size());
  return tensor;
}

std::vector<std::int32_t> ids_of(const Tensor& tensor, std::size_t row) {
  if (tensor.type != "INT64" && tensor.type != "INT32")
    refuse(400, "inputs: {}: datatype: expected INT64 or INT32, got {}", tensor.name, io::shown(tensor.type));
  if (tensor.dimensions != 2)
    refuse(400, "inputs: {}: shape: expected two dimensions, rows and tokens, got one", tensor.name);
  std::vector<std::int32_t> ids;
  for (std::size_t i = row * tensor.width; i < (row + 1) * tensor.width; ++i) {
    const Json& value = tensor.data[i];
    if (!value.is_number_integer() || value < 0 || value > std::numeric_limits<std::int32_t>::max())
      refuse(400, "inputs: {}: data[{}]: expected an id, got {}", tensor.name, i, io::shown(value));
    ids.push_back(value.get<std::int32_t>());
  }
  return ids;
}

/// Whether a row is a list of texts.
bool has_lists(const Tensor& tensor) {
  return tensor.name == "choices" || tensor.name == "words" || tensor.name == "tokens";
}

class Inputs {
 public:
  explicit Inputs(const Json& list) {
    if (list.empty() || list.size() > kMostTensors)
      refuse(400, "inputs: expected 1 to {} tensors, got {}", kMostTensors, list.size());
    for (const Json& each : list) {
      Tensor tensor = read_tensor(each);
      if (find(tensor.name)) refuse(400, "inputs: {}: expected once, got it twice", tensor.name);
      tensors_.push_back(std::move(tensor));
      if (tensors_.back().rows != rows())
        refuse(400, "inputs: {}: expected {} rows as {} has, got {}", tensors_.back().name, rows(), tensors_[0].name,
               tensors_.back().rows);
    }
    const bool has_ids = find("input_ids") != nullptr;
    for (const Tensor& tensor : tensors_) check_input_name(tensor.name, has_ids);
  }
  std::size_t rows() const { return tensors_[0].rows; }

  inference::Query encode(const ServedModel& model, std::size_t row) const {
    const std::string where = fmt::format("inputs[{}]", row);
    if (const Tensor* ids = find("input_ids")) {
      GivenIds given{.ids = ids_of(*ids, row)};
      if (const Tensor* mask = find_either("attention_mask", "input_mask")) given.mask = ids_of(*mask, row);
      if (const Tensor* types = find_either("token_type_ids", "segment_ids")) given.types = ids_of(*types, row);
      return model.predictor().encode_ids(without_padding(std::move(given), where), where);
    }
    Json request = Json::object();
    for (const Tensor& tensor : tensors_) {
      if (is_passed_over(tensor.name)) continue;
      const bool is_list = has_lists(tensor);
      if (tensor.type != "BYTES" || (is_list ? tensor.dimensions != 2 : tensor.width != 1))
        refuse(400, "inputs: {}: expected input_ids, or texts: BYTES of shape {}, got {} of {}", tensor.name,
               is_list ? "[N, K]" : "[N] or [N, 1]", tensor.type, tensor.shape);
      const auto first = tensor.data.begin() + static_cast<std::ptrdiff_t>(row * tensor.width);
      request[tensor.name] =
          is_list ? Json(std::vector(first, first + static_cast<std::ptrdiff_t>(tensor.width))) : *first;
    }
    return model.predictor().encode(request, where);
  }

 private:
  const Tensor* find(std::string_view name) const {
    const auto found = std::ranges::find(tensors_, name, &Tensor::name);
    return found == tensors_.end() ? nullptr : &*found;
  }
  const Tensor* find_either(std::string_view name, std::string_view other) const {
    const Tensor *const one = find(name), *const two = find(other);
    if (one && two) refuse(400, "inputs: expected {} or {}, got both", name, other);
    return one ? one : two;
  }
  std::vector<Tensor> tensors_;
};

/// The values of a list or an object as a list.
Json numbers_of(const Json& values) {
  Json numbers = Json::array();
  for (const Json& value : values) numbers.push_back(value);
  return numbers;
}

/// A tensor of values in lists of equal lengths. Its shape is how these are nested.
Json output(const char* name, const char* type, const Json& values) {
  Json shape = Json::array();
  for (const Json* at = &values; at->is_array(); at = &at->front()) shape.push_back(at->size());
  std::vector<Json> data;
  flatten(values, data);
  return {{"name", name}, {"datatype", type}, {"shape", shape}, {"data", data}};
}

/// The numbers that `key` has in every answer.
Json numbers(const char* name, const char* key, const std::vector<Json>& answers) {
  Json rows = Json::array();
  for (const Json& answer : answers) rows.push_back(numbers_of(answer.at(key)));
  return output(name, "FP32", rows);
}

Json outputs_of(const std::vector<Json>& answers, const ServedModel& model) {
  Json outputs = Json::array();
  for (const char* const name : {"embedding", "probabilities", "logits", "start_logits", "end_logits"})
    if (answers[0].contains(name)) outputs.push_back(numbers(name, name, answers));
  if (!outputs.empty()) return outputs;
  const bool has_label = model.head() == inference::Head::classify;
  Json texts = Json::array();
  for (const Json& answer : answers) texts.push_back(has_label ? answer.at("label") : Json(io::json_text(answer)));
  if (has_label) outputs.push_back(numbers(model.scores_name(), "scores", answers));
  outputs.push_back(output(has_label ? "label" : "answer", "BYTES", texts));
  return outputs;
}

/// Says that a request wants an output that there is not, if it does.
std::optional<Response> refused(const std::vector<std::string>& wanted, const Json& outputs) {
  std::vector<std::string> names;
  for (const Json& each : outputs) names.push_back(each.at("name"));
  for (const std::string& name : wanted)
    if (std::ranges::find(names, name) == names.end())
      return Response{.status = 400,
                      .body = io::json_text({{"error", fmt::format("outputs: expected one of {}, got {}",
                                                                   fmt::join(names, ", "), io::shown(name))}})};
  return {};
}

/// Of the outputs, those of FP32 are for ids, and of a classifier for texts too.
Json metadata(const ServedModel& model) {
  using inference::Head;
  const auto tensor = [](const char* name, const char* type, Json shape) {
    return Json{{"name", name}, {"datatype", type}, {"shape", std::move(shape)}};
  };
  const Json list = Json::array({-1}), matrix = Json::array({-1, -1});
  Json inputs = Json::array(), outputs = Json::array();
  for (const char* const text : model.head() == Head::answer ? std::vector{"question", "context"} : std::vector{"text"})
    inputs.push_back(tensor(text, "BYTES", list));
  if (model.head() == Head::choose) inputs.push_back(tensor("choices", "BYTES", matrix));
  for (const char* const ids : {"input_ids", "attention_mask", "token_type_ids"})
    inputs.push_back(tensor(ids, "INT64", matrix));
  switch (model.head()) {
    case Head::classify: outputs.push_back(tensor(model.scores_name(), "FP32", matrix)); break;
    case Head::choose: outputs.push_back(tensor("logits", "FP32", matrix)); break;
    case Head::embed: outputs.push_back(tensor("embedding", "FP32", matrix)); break;
    case Head::tokens: outputs.push_back(tensor("probabilities", "FP32", Json::array({-1, -1, -1}))); break;
    case Head::answer:
      for (const char* const name : {"start_logits", "end_logits"}) outputs.push_back(tensor(name, "FP32", matrix));
      break;
    case Head::fill_mask: break;
  }
  if (model.head() == Head::classify) outputs.push_back(tensor("label", "BYTES", list));
  else if (model.head() != Head::embed) outputs.push_back(tensor("answer", "BYTES", list));
  return {{"name", model.name()},
          {"versions", Json::array({std::to_string(model.version())})},
          {"platform", "bertrand"},
          {"inputs", std::move(inputs)},
          {"outputs", std::move(outputs)}};
}

}  // namespace

Question infer(const ModelPointer& model, const std::string& body, std::size_t max_texts) {
  const Json request = parse_body(body, 400);
  io::JsonReader reader(request, {"request", Failure::input});
  const std::string id = reader.text("id", "");
  const Inputs inputs(reader.list("inputs"));
  check_count(inputs.rows(), max_texts, 400);
  Question question{.model = model};
  for (std::size_t row = 0; row < inputs.rows(); ++row) question.queries.push_back(inputs.encode(*model, row));
  std::vector<std::string> wanted;
  if (request.contains("outputs")) {
    const Json& outputs = reader.list("outputs");
    if (outputs.size() > kMostTensors)
      refuse(400, "outputs: expected at most {}, got {}", kMostTensors, outputs.size());
    for (const Json& each : outputs) wanted.push_back(io::JsonReader(each, {"outputs", Failure::input}).text("name"));
  }
  question.respond = [model, id, wanted](const std::vector<Json>& answers) {
    const Json all = outputs_of(answers, *model);
    if (auto refusal = refused(wanted, all)) return *std::move(refusal);
    Json outputs = Json::array();
    for (const Json& each : all)
      if (wanted.empty() || std::ranges::find(wanted, each.at("name").get<std::string>()) != wanted.end())
        outputs.push_back(each);
    Json response = {{"model_name", model->name()}, {"model_version", std::to_string(model->version())}};
    if (!id.empty()) response["id"] = id;
    response["outputs"] = std::move(outputs);
    return Response{.body = io::json_text(response)};
  };
  return question;
}

Plan plan(const Request& request, const Models& models, std::size_t max_texts) {
  std::vector<std::string> parts;
  for (const std::string_view part : io::split(path_of(request.target).substr(1), '/'))
    parts.push_back(percent_decoded(part));
  const bool is_get = request.method == "GET", is_post = request.method == "POST";
  if (parts.size() == 1 && is_get)
    return Response{.body =
                        io::json_text({{"name", "bertrand"}, {"version", version()}, {"extensions", Json::array()}})};
  if (parts.size() == 3 && parts[1] == "health" && is_get) {
    if (parts[2] == "live") return Response{.body = R"({"live":true})"};
    if (parts[2] == "ready") return Response{.body = R"({"ready":true})"};
  }
  if (parts.size() < 3 || parts[1] != "models")
    refuse(404, "expected a path of the protocol, got {} {}", request.method, request.target);
  const ModelPointer model = models.find(parts[2]);
  std::size_t next = 3;
  const bool has_version = parts.size() > 4 && parts[3] == "versions";
  if (has_version) next = 5;
  if (!model || (has_version && parts[4] != std::to_string(model->version())))
    refuse(404, "expected a model that is served, got {}", request.target);
  if (parts.size() == next && is_get) return Response{.body = io::json_text(metadata(*model))};
  if (parts.size() == next + 1 && parts[next] == "ready" && is_get)
    return Response{.body = io::json_text({{"name", model->name()}, {"ready", true}})};
  if (parts.size() == next + 1 && parts[next] == "infer" && is_post) return infer(model, request.body, max_texts);
  refuse(404, "expected a path of the protocol, got {} {}", request.method, request.target);
}

}  // namespace bertrand::serving::kserve
