// Models opened and asked, one request at a time.
#pragma once
#include "bert/inference/open.h"
#include "bert/network/golden.h"
#include "support/refusal.h"

namespace support {

inline std::unique_ptr<bertrand::inference::Predictor> open(const std::filesystem::path& directory,
                                                            bertrand::inference::Head head,
                                                            const bertrand::inference::Options& options = {}) {
  return bertrand::inference::open({.directory = directory, .backend = bertrand::golden::cpu()}, head, options);
}

/// The answer to one request by itself.
inline bertrand::io::Json ask(const bertrand::inference::Predictor& predictor, const bertrand::io::Json& request) {
  const bertrand::inference::Query query = predictor.encode(request, "here");
  return bertrand::inference::answer(query, predictor.run(query.sequences));
}

/// Why a request, which stands at t:3, is refused.
inline std::string refused(const bertrand::inference::Predictor& predictor, const bertrand::io::Json& request) {
  return refusal(bertrand::Failure::input, [&] { predictor.encode(request, "t:3"); });
}

}  // namespace support
