// serve's flags and their help.
#include "apps/serve/options.h"

#include "apps/cli/flags.h"
#include "io/file_names.h"
#include "io/units.h"

namespace bertrand::serve {

const char* const kDescription =
    "Serves models over HTTP: what predict answers, for many clients at once. Prints\n"
    "\"listening on http://HOST:PORT\" when it is ready. SIGTERM ends it after all answers, at most --timeout later.\n"
    "\n"
    "  GET  /                              a page to try the models\n"
    "  POST /answer                        {model, text, …} as predict, with the tokens that were read\n"
    "  POST /v1/models/NAME:predict        TensorFlow Serving: {instances: […]} or {inputs: …}, ids or texts\n"
    "  GET  /v1/models/NAME[/metadata]     its status and its signature\n"
    "  POST /predict, /embed, /rerank      text-embeddings-inference: {inputs: …} or {query: …, texts: […]}\n"
    "  POST /v1/embeddings                 OpenAI: {input: …}\n"
    "  POST /v2/models/NAME/infer          KServe version 2: tensors of ids or texts\n"
    "  GET  /health, /info, /metrics, /models\n"
    "\n"
    "It speaks plain HTTP: before other machines reach it, put a proxy with TLS in front of it.";

namespace {

void add_models(CLI::App& app, Options& o) {
  app.add_option("--model", o.models,
                 "model directory and its name (default that of the directory); several may follow")
      ->type_name("[NAME=]DIR");
  app.add_option("--model-base-path", o.base,
                 "directory of versions named by numbers: the newest is served, and replaced when a newer one comes")
      ->type_name("DIR");
  app.add_option("--model-name", o.name, "name of the model in --model-base-path")->type_name("NAME");
  cli::number_flag(app, "--file-system-poll-wait-seconds", o.look_every, {0.01, 1e6},
                   "seconds after which a newer version is looked for again")
      ->needs("--model-base-path");
  app.add_option("--vocab-file", o.service.model.tokenizer.vocab_file, "vocab.txt, for model directories without one")
      ->type_name("FILE");
  app.add_flag("--cased", o.service.model.tokenizer.cased, "with --vocab-file: keep case and accents");
  cli::set_heading(app, "models");
}

void add_heads(CLI::App& app, Options& o) {
  using inference::Head;
  const auto own = [&o](CLI::Option* option, std::vector<Head> heads) { o.own_flags.push_back({option, heads}); };
  inference::Options& i = o.service.model.inference;
  cli::task_flags(app, o.service.model.head, i);
  own(cli::number_flag(
          app, "--top-k", i.top_k, {1, 1 << 10},
          fmt::format("words for a mask, candidates for an answer; the score of an answer is a share among "
                      "{} candidates, or among these if they are more",
                      i.answers.n_best_size)),
      {Head::fill_mask, Head::answer});
  own(cli::pooling_flag(app, i), {Head::embed});
  own(app.add_flag("--normalize", i.normalize, "embeddings of length 1 (/embed makes them so by default)"),
      {Head::embed});
  own(cli::null_threshold_flag(app, o.null_threshold), {Head::answer});
  cli::set_heading(app, "task");
}

void add_limits(CLI::App& app, Options& o) {
  serving::HttpOptions& http = o.service.http;
  app.add_option("--host", http.host, "address to listen on; 0.0.0.0: all of this machine")
      ->type_name("HOST")
      ->capture_default_str();
  cli::number_flag(app, "--port", http.port, {0, 65535}, "port to listen on; 0: any free one");
  cli::number_flag(app, "--max-batch-tokens", o.service.batches.max_tokens, {1, 1 << 24},
                   "tokens computed at once; does not change an answer");
  cli::number_flag(app, "--max-waiting", o.service.batches.max_waiting, {1, 1 << 20},
                   "requests that wait for the model; more are refused with status 429");
  cli::number_flag(app, "--max-client-batch", o.service.max_texts, {1, 1 << 20}, "texts of a request");
  cli::number_flag(app, "--max-connections", http.max_connections, {1, 1 << 20},
                   "connections; beyond them the one that idles longest is closed");
  const std::size_t most = o.service.max_request_bytes;  // which all requests share
  app.add_option_function<std::string>(
         "--max-body",
         [&http, most](const std::string& text) {
           http.max_body = io::parse_bytes("--max-body", text);
           if (http.max_body > most) fail(Failure::usage, "--max-body: expected at most {} bytes, got {}", most, text);
         },
         fmt::format("bytes of a request's body, also as 2MiB (at most {}; default {})", most, http.max_body))
      ->type_name("BYTES");
  cli::number_flag(app, "--timeout", o.timeout, {0.01, 86400},
                   "seconds for a request to arrive (else status 408) and for its answer to be made (else 504)");
  cli::set_heading(app, "limits");
}

void add_machine(CLI::App& app, Options& o) {
  cli::machine_flags(app, o.service.model.machine, "an answer");
  app.add_option("--check", o.check, "asks the server at this URL whether it is healthy, and exits with 0 or 5")
      ->type_name("URL");
  cli::set_heading(app, "machine");
}

serving::ModelPlace place_of(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals != std::string::npos && text.find('/') > equals)
    return {.name = text.substr(0, equals), .directory = text.substr(equals + 1)};
  const auto directory = io::without_slash(std::filesystem::absolute(text).lexically_normal());
  return {.name = directory.filename().string(), .directory = text};
}

std::chrono::milliseconds milliseconds_of(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

}  // namespace

void add_flags(CLI::App& app, Options& options) {
  add_models(app, options);
  add_heads(app, options);
  add_limits(app, options);
  add_machine(app, options);
}

serving::ServiceOptions complete(const Options& options) {
  serving::ServiceOptions service = options.service;
  for (const std::string& text : options.models) {
    service.models.push_back(place_of(text));
    const serving::ModelPlace& place = service.models.back();
    if (place.name.empty() || place.directory.empty()) fail(Failure::usage, "--model: expected NAME=DIR, got {}", text);
    if (std::ranges::count(service.models, place.name, &serving::ModelPlace::name) + (place.name == options.name) > 1)
      fail(Failure::usage, "--model: expected each name once, got {} twice; hint: NAME=DIR", place.name);
  }
  if (options.base.empty() != options.name.empty())
    fail(Failure::usage, "--model-base-path and --model-name: expected both or none, got {}",
         options.base.empty() ? "the name alone" : "the path alone");
  if (!options.base.empty())
    service.versioned = {.name = options.name, .base = options.base, .look_every = milliseconds_of(options.look_every)};
  if (service.models.empty() && !service.versioned)
    fail(Failure::usage, "--model: expected a model directory, got none; hint: or --model-base-path and --model-name");
  service.http.timeout = milliseconds_of(options.timeout);
  service.model.inference.answers.version_2 = options.null_threshold.has_value();
  service.model.inference.answers.null_score_diff_threshold = options.null_threshold.value_or(0);
  return service;
}

}  // namespace bertrand::serve
