#include "apps/prepare/tokenizer_flags.h"

#include "bert/directory/config_file.h"
#include "bert/directory/model_directory.h"
#include "io/error.h"

namespace bertrand::prepare {

std::vector<std::filesystem::path> TokenizerFlags::files() const {
  std::vector<std::filesystem::path> files;
  if (!vocab_file.empty()) files.push_back(vocab_file);
  if (!model.empty()) files.push_back(bert::config_file(model));
  return files;
}

text::Tokenizer load_tokenizer(const TokenizerFlags& flags, const TokenizerNeeds& needs) {
  if (flags.vocab_file.empty() && flags.model.empty())
    fail(Failure::usage, "--vocab-file, --model: expected one of them, got none");
  if (flags.model.empty())
    return text::load_tokenizer(flags.vocab_file, flags.cased,
                                {.failure = Failure::input, .require_specials = needs.specials},
                                {.keep_special_tokens = needs.keep_special_tokens});
  const text::Tokenizer own = bert::read_tokenizer(flags.model, {.vocab_file = flags.vocab_file, .cased = flags.cased},
                                                   bert::read_config(flags.model));
  text::TokenizerOptions options = own.options();
  options.keep_special_tokens = needs.keep_special_tokens;
  return text::Tokenizer(own.vocabulary(), options);
}

}  // namespace bertrand::prepare
