// OpenAI's route of embeddings, which clients of many servers speak: /v1/embeddings, and its errors.
#pragma once
#include "serving/dialect.h"

namespace bertrand::serving::openai {

/// POST /v1/embeddings: {"input": "a" | ["a", …], "model": NAME (the first encoder), "encoding_format": "float" |
/// "base64", the bytes of f32 in little-endian order} → {"object", "data": [{"object", "index", "embedding"}, …],
/// "model", "usage"}. The vectors have length 1. With "truncate": true, which OpenAI does not know, a text that is too
/// long loses its end. Throws Refusal, and Error for a bad text; a request has at most `max_texts`.
Question embeddings(const Request& request, const Models& models, std::size_t max_texts);

/// {"error": {"message", "type", "param", "code"}}
std::string error_text(int status, const std::string& message);

}  // namespace bertrand::serving::openai
