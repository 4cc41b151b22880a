// Routes of Hugging Face's text-embeddings-inference: /predict, /embed, /rerank and /info, its errors among them.
// Requests there name no model: the first one with the right head answers.
#pragma once
#include "serving/dialect.h"

namespace bertrand::serving::tei {

struct Limits {
  std::size_t max_waiting = 512;  ///< requests
  std::int64_t max_batch_tokens = 4096;
  std::size_t max_texts = 1024;  ///< of a request
};

/// POST /predict: {"inputs": "a" | ["a", "b"] (a pair) | [["a"], ["a", "b"], …], "raw_scores", "truncate"} →
/// [{"score", "label"}, …], the best first, or a list of such lists.
/// POST /embed: {"inputs": "a" | ["a", …], "normalize" (true), "truncate"} → [[…], …].
/// POST /rerank: {"query", "texts": ["a", …], "raw_scores", "return_text", "truncate"} → [{"index", "text", "score"},
/// …], the best first. The score is the probability that the text answers the query, or its log-odds.
/// POST of another path: as /rerank if there is a query, else as /predict if there is a classifier, else as /embed.
/// Throws Refusal, and Error for a bad text.
Question ask(const Request& request, const Models& models, const Limits& limits);
/// GET /info, of the first model.
std::string info_text(const Models& models, const Limits& limits);

/// {"error", "error_type"}
std::string error_text(int status, const std::string& message);

}  // namespace bertrand::serving::tei
