// From a request to its dialect, and from a failure to the dialect's words for it. A function of the request and of
// what is served: no sockets, no threads.
#pragma once
#include "serving/dialect.h"
#include "serving/metrics.h"
#include "serving/tei.h"

namespace bertrand::serving {

/// What a request is answered from.
struct Served {
  const Models& models;
  const Metrics& metrics;
  std::size_t waiting = 0;     ///< requests
  std::size_t held_bytes = 0;  ///< by all of them
  tei::Limits limits = {};
};

/// Whether the request is one for a model, of which only so many may wait.
bool asks_a_model(const Request& request);
/// What to do with a request. Whatever is wrong with it is a response too.
Plan plan(const Request& request, const Served& served);
/// The response that says in the request's dialect why there is no answer.
Response refusal(const Request& request, int status, const std::string& message);

/// The page at /: a text is typed, the answer is seen with its tokens. Generated from serving/page.html.
extern const std::string_view kPage;

}  // namespace bertrand::serving
