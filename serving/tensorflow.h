// TensorFlow Serving's REST API (tensorflow/serving: http_rest_api_util.cc, http_rest_api_handler.cc, json_tensor.cc):
// its routes, its two forms of predict, its texts against bad requests. A model has one signature, serving_default,
// with input_ids, input_mask and segment_ids, of which the latter two may be left out. Beyond that API: lists of ids
// may differ in length, and a text may stand in place of its ids.
#pragma once
#include "serving/dialect.h"

namespace bertrand::serving::tensorflow {

/// A request under /v1/. Throws Refusal, and Error for a text that cannot be read.
Plan plan(const Request& request, const Models& models, std::size_t max_texts);

/// POST …:predict with this body.
Question predict(const ModelPointer& model, const std::string& body, std::size_t max_texts);

/// GET /v1/models/NAME and …/metadata, as protobuf's printer writes them.
std::string status_text(const ServedModel& model);
std::string metadata_text(const ServedModel& model);

/// As rapidjson's PrettyWriter: four spaces, and a row, or every array in it, on one line.
std::string row_text(const std::vector<io::Json>& predictions);
std::string column_text(const io::Json& outputs);

}  // namespace bertrand::serving::tensorflow
