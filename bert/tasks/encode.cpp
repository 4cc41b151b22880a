#include "bert/tasks/encode.h"

#include "tensor/error.h"

namespace bertrand::tasks {

Encoded encode_pieces(std::vector<std::int32_t> a, std::optional<std::vector<std::int32_t>> b, SpecialTokens special,
                      int max_length) {
  const int least = b ? 5 : 3;
  if (max_length < least)
    fail(Failure::usage, "--max-seq-length: expected at least {} for {}, got {}", least, b ? "pairs" : "single texts",
         max_length);
  if (!b && static_cast<int>(a.size()) > max_length - 2) a.resize(static_cast<std::size_t>(max_length - 2));
  while (b && static_cast<int>(a.size() + b->size()) > max_length - 3) (a.size() > b->size() ? a : *b).pop_back();

  Encoded encoded;
  encoded.token_ids.push_back(special.cls);
  encoded.token_ids.insert(encoded.token_ids.end(), a.begin(), a.end());
  encoded.token_ids.push_back(special.sep);
  encoded.token_types.assign(encoded.token_ids.size(), 0);
  if (b) {
    encoded.token_ids.insert(encoded.token_ids.end(), b->begin(), b->end());
    encoded.token_ids.push_back(special.sep);
    encoded.token_types.resize(encoded.token_ids.size(), 1);
  }
  return encoded;
}

}  // namespace bertrand::tasks
