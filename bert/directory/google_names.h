// The names that TensorFlow's checkpoints give to the parameters of a BERT.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bertrand::bert {

/// A parameter, and how a checkpoint holds it.
struct GoogleName {
  std::string name;
  bool transposed = false;  ///< kernels are [in, out]; ours are [out, in]
};

/// The name in google-research/bert (modeling.py, run_pretraining.py, run_classifier.py, run_squad.py) of a parameter
/// of this library, which has that of Hugging Face; none if there is none.
std::optional<GoogleName> google_name(std::string_view ours);

/// The inverse: ours for a name in a checkpoint of google-research/bert, or for a key of an object-based checkpoint of
/// TensorFlow's model garden (`layer_with_weights-N/…` and `_transformer_layers/N/…`, also of an encoder within another
/// model); none for what is no parameter.
std::optional<GoogleName> our_name(std::string_view stored);

/// `dims` of a parameter that is stored with its heads apart, [hidden, heads, size] or [heads, size, hidden], as a
/// matrix or vector; as they are if `ours` is not of an attention.
std::vector<std::int64_t> joined_heads(std::string_view ours, const std::vector<std::int64_t>& dims);

/// Whether a name is of the checkpoint's own bookkeeping, which stands for nothing of a model.
bool is_bookkeeping(std::string_view stored);

}  // namespace bertrand::bert
