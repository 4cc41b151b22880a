// KServe's Open Inference Protocol, version 2, over REST: health, metadata and infer. Inputs are either "text" (and
// "text_pair" or "choices" [N, K], or "question" and "context") of BYTES, or "input_ids" (and a mask and types) of
// INT64 or INT32. Outputs are "probabilities" (and "label"), "logits" or "embedding"; of every other head "answer",
// JSON as BYTES.
#pragma once
#include "serving/dialect.h"

namespace bertrand::serving::kserve {

/// A request to /v2 or under /v2/. Throws Refusal, and Error for a text that cannot be read.
Plan plan(const Request& request, const Models& models, std::size_t max_texts);

/// POST …/infer with this body.
Question infer(const ModelPointer& model, const std::string& body, std::size_t max_texts);

}  // namespace bertrand::serving::kserve
