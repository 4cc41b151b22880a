#include "apps/pretrain/source.h"

#include "bert/directory/config_file.h"
#include "training/run/checkpoint.h"

namespace bertrand::pretrain {
namespace {

Source new_model(const Options& options) {
  const bool is_file = !bert::Config::is_preset(options.config) && std::filesystem::exists(options.config);
  bert::Config config = is_file ? bert::read_config_file(options.config, bert::UnknownKeys::refuse)
                                : bert::Config::preset(options.config);
  text::Tokenizer tokenizer = text::load_tokenizer(options.vocabulary, options.cased);
  if (!is_file) config.vocab_size = tokenizer.vocabulary().size();
  bert::check_size(tokenizer.vocabulary(), options.vocabulary, config.vocab_size, options.config);
  return {std::move(config), std::move(tokenizer)};
}

Source existing_model(const std::filesystem::path& model, const bert::TokenizerFlags& flags) {
  bert::Config config = bert::read_config(model);
  text::Tokenizer tokenizer = bert::read_tokenizer(model, flags, config);
  return {std::move(config), std::move(tokenizer)};
}

}  // namespace

Source source_of(const Options& options) {
  std::vector<std::filesystem::path> began_with = {options.vocabulary};
  if (!options.init.empty()) began_with.push_back(bert::config_file(options.init));
  else if (!bert::Config::is_preset(options.config)) began_with.emplace_back(options.config);
  if (options.settings.resume)
    if (const auto own = training::checkpoint_in_place_of(began_with, options.settings.output); !own.empty())
      return existing_model(own, {});
  if (options.init.empty()) return new_model(options);
  return existing_model(options.init, {.vocab_file = options.vocabulary, .cased = options.cased});
}

}  // namespace bertrand::pretrain
