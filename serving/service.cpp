// From a request to the queue and from an outcome to the client, and newer versions.
#include "serving/service.h"

#include <exception>
#include <new>
#include <numeric>
#include <optional>
#include <thread>

#include "io/error.h"
#include "io/machine.h"
#include "io/say.h"
#include "io/signals.h"
#include "io/units.h"

namespace bertrand::serving {
namespace {

constexpr const char* kOutOfMemory = "out of memory";

std::optional<Failure> failure_of(const std::exception& error) {
  const auto* const known = dynamic_cast<const Error*>(&error);
  return known ? std::optional(known->failure()) : std::nullopt;
}

/// Whether a version that did not load may do so later though its files are the same.
bool time_may_mend(const std::exception& error) {
  const std::optional<Failure> failure = failure_of(error);
  return !failure || failure == Failure::memory || failure == Failure::io;
}

}  // namespace

Service::Service(const ServiceOptions& options)
    : options_(options),
      budget_(options.max_request_bytes),
      http_(
          options.http, budget_,
          [this](const Request& request, const std::shared_ptr<Exchange>& exchange) { handle(request, exchange); },
          [this](const Request& head, int status, const std::string& why) {
            if (status < 500) metrics_.request();  // it did not arrive whole: handle() has not seen it
            metrics_.refused(status);
            return refusal(head, status, why);
          }),
      batcher_(options.batches, metrics_) {
  for (const ModelPlace& place : options.models) models_.put(std::make_shared<ServedModel>(place, options.model));
  if (options.versioned) load_first();
  io::leave_if_requested("loading models");
  http_.listen();  // a client that is let in finds the models
}

/// The newest version after this one that can be loaded. One that could not is tried again when it has changed.
Service::Loaded Service::load_after(std::int64_t served) {
  Loaded loaded;
  for (const ModelPlace& place : versions_in(options_.versioned->base, options_.versioned->name)) {
    if (place.version <= served) break;
    const std::string state = state_of(place.directory);
    if (const auto failed = failed_.find(place.directory); failed != failed_.end() && failed->second == state) continue;
    try {
      loaded.model = std::make_shared<ServedModel>(place, options_.model);
      break;
    } catch (const std::exception& error) {
      if (failure_of(error) == Failure::interrupted) throw;  // no fault of the version
      if (!loaded.fault) loaded.fault = std::current_exception();
      if (!time_may_mend(error)) failed_[place.directory] = state;
    }
  }
  return loaded;
}

/// If no version can be loaded, the fault of the newest is the one that is reported.
void Service::load_first() {
  const Loaded loaded = load_after(-1);
  if (loaded.model) {
    models_.put(loaded.model);
    if (loaded.fault) complain(loaded.model->version(), loaded.fault);
    return;
  }
  if (loaded.fault) std::rethrow_exception(loaded.fault);
  fail(Failure::model,
       "{}: expected a directory with a number for its name, got none; hint: --model serves a model without versions",
       options_.versioned->base.string());
}

/// Says once what is wrong with the newest version.
void Service::complain(std::int64_t served, const std::exception_ptr& fault) {
  try {
    std::rethrow_exception(fault);
  } catch (const std::exception& error) {
    const std::string complaint =
        fmt::format("warning: {}: version {} goes on: {}", options_.versioned->name, served, error.what());
    if (complaint != std::exchange(complaint_, complaint)) io::tell("{}", complaint);
  }
}

std::set<inference::Head> Service::heads() const {
  std::set<inference::Head> heads;
  for (const ModelPointer& model : models_.all()) heads.insert(model->head());
  return heads;
}

std::string Service::memory_plan() const {
  // JSON takes up to 40 bytes for each byte of its text, and a context of full stops becomes 200 bytes a word.
  constexpr std::size_t kOfConnection = 40 << 10, kOfParser = 200;
  std::size_t batch = 0;
  for (const ModelPointer& model : models_.all()) batch += model->batch_bytes(options_.batches.max_tokens);
  const std::size_t now = io::resident_bytes(), requests = budget_.bytes() + kOfParser * options_.http.max_body,
                    connections = kOfConnection * options_.http.max_connections,
                    newer = options_.versioned ? now : 0;  // it is loaded while the old one still answers
  const auto text = [](std::size_t bytes) { return io::bytes_text(static_cast<double>(bytes)); };
  return fmt::format("memory: at most {}: models {}, a batch {}, requests and answers {}, connections {}{}",
                     text(now + batch + requests + connections + newer), text(now), text(batch), text(requests),
                     text(connections), newer > 0 ? ", a newer version " + text(newer) : "");
}

void Service::run() {
  std::optional<io::LeaveRequest> leave;  // until the threads have ended
  std::jthread model([this] { batcher_.run(); });
  std::jthread versions([this] { look_for_versions(); });
  const auto end = [&] {
    leave.emplace();  // no other version is begun
    batcher_.stop();
    const std::lock_guard lock(end_mutex_);
    end_ = true;
    ended_.notify_one();
  };
  try {
    http_.run();
  } catch (...) {
    end();
    throw;
  }
  end();
}

void Service::handle(const Request& request, const std::shared_ptr<Exchange>& exchange) {
  const auto since = Clock::now();
  if (asks_a_model(request)) metrics_.request();
  if (asks_a_model(request) && batcher_.is_full())
    return respond(request, refusal(request, 429, "Model is overloaded"), exchange, since);
  try {
    Plan plan = [&] {
      const std::lock_guard lock(models_mutex_);
      return serving::plan(request, {.models = models_,
                                     .metrics = metrics_,
                                     .waiting = batcher_.waiting(),
                                     .held_bytes = budget_.held(),
                                     .limits = {.max_waiting = options_.batches.max_waiting,
                                                .max_batch_tokens = options_.batches.max_tokens,
                                                .max_texts = options_.max_texts}});
    }();
    if (auto* response = std::get_if<Response>(&plan)) return respond(request, std::move(*response), exchange, since);
    metrics_.encoded(seconds_since(since));
    ask(std::get<Question>(std::move(plan)), request, exchange, since);
  } catch (const std::bad_alloc&) {
    respond(request, refusal(request, 503, kOutOfMemory), exchange, since);
  }
}

void Service::ask(Question question, const Request& request, const std::shared_ptr<Exchange>& exchange,
                  Clock::time_point since) {
  // What the answer needs of the request, as its id, is no longer than its body.
  const std::size_t bytes =
      std::accumulate(question.queries.begin(), question.queries.end(), request.body.size() + question.bytes,
                      [&](std::size_t sum, const auto& query) { return sum + question.model->bytes_of(query); });
  if (bytes > budget_.bytes())
    return respond(request,
                   refusal(request, 413, "expected a smaller request, got one whose answer may take too much memory"),
                   exchange, since);
  const auto share = std::make_shared<Budget::Share>(budget_);
  const Request head{.method = request.method, .target = request.target};
  const auto done = [=, this, make = std::move(question.respond)](Outcome outcome) {
    const auto kept = std::make_shared<Outcome>(std::move(outcome));
    exchange->answer(
        [=, this] {
          Response response;
          try {
            response = kept->error.empty() ? make(kept->answers) : refusal(head, kept->status, kept->error);
          } catch (const std::bad_alloc&) {
            response = refusal(head, 503, kOutOfMemory);
          }
          response.keeps = share;
          metrics_.response(response.status, seconds_since(since));
          return response;
        },
        [this] { metrics_.dropped(1); });
  };
  Work work{.model = std::move(question.model),
            .queries = std::move(question.queries),
            .is_wanted = [exchange] { return exchange->is_wanted(); },
            .done = done};
  if (!share->grow_to(bytes))
    return respond(
        request,
        refusal(request, 429,
                "expected room for the answer, got a server whose memory for requests and answers is in use; "
                "hint: later"),
        exchange, since);
  if (!batcher_.put(std::move(work))) respond(request, refusal(request, 429, "Model is overloaded"), exchange, since);
}

void Service::respond(const Request& request, Response response, const std::shared_ptr<Exchange>& exchange,
                      Clock::time_point since) {
  if (asks_a_model(request)) metrics_.response(response.status, seconds_since(since));
  exchange->answer([response = std::move(response)] { return response; });
}

void Service::look_for_versions() {
  if (!options_.versioned) return;
  std::unique_lock lock(end_mutex_);
  while (!ended_.wait_for(lock, options_.versioned->look_every, [this] { return end_; })) {
    lock.unlock();
    load_newest();
    lock.lock();
  }
}

/// The old version answers until the new one is loaded, and what was asked of it after that too. It goes on if its
/// directory is gone, which is so for a moment while somebody replaces it: an older version never takes its place.
void Service::load_newest() {
  const VersionedModel& versioned = *options_.versioned;
  const auto served = [&] {
    const std::lock_guard lock(models_mutex_);
    return models_.find(versioned.name)->version();
  }();
  try {
    const Loaded loaded = load_after(served);
    if (loaded.model) {
      const std::lock_guard lock(models_mutex_);
      models_.put(loaded.model);
      io::tell("{}: version {} in place of {}", versioned.name, loaded.model->version(), served);
    }
    if (loaded.fault) complain(loaded.model ? loaded.model->version() : served, loaded.fault);
  } catch (const std::exception& error) {
    if (failure_of(error) != Failure::interrupted) complain(served, std::current_exception());
  }
}

}  // namespace bertrand::serving
