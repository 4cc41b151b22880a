// The queue and what the model's thread does with it.
#include "serving/batcher.h"

#include <algorithm>
#include <exception>
#include <new>

#include "io/error.h"
#include "io/say.h"

namespace bertrand::serving {
namespace {

std::int64_t tokens_of(const Work& work) {
  std::int64_t tokens = 0;
  for (const inference::Query& query : work.queries)
    for (const bert::Sequence& sequence : query.sequences) tokens += std::ssize(sequence.token_ids);
  return tokens;
}

/// Ends a batch that nobody wants any more.
struct Left {};

/// What to tell whoever asked, of the exception that is handled now.
Outcome failed() {
  try {
    throw;
  } catch (const Error& error) {
    return {.status = error.failure() == Failure::memory ? 503 : 500, .error = error.what()};
  } catch (const std::bad_alloc&) {
    return {.status = 503, .error = "out of memory"};
  } catch (const std::exception& error) {
    return {.status = 500, .error = error.what()};
  }
}

}  // namespace

std::size_t Batcher::waiting() const {
  const std::lock_guard lock(mutex_);
  return queue_.size();
}

bool Batcher::put(Work work) {
  const std::lock_guard lock(mutex_);
  if (queue_.size() >= options_.max_waiting) return false;
  queue_.push_back(std::move(work));
  changed_.notify_one();
  return true;
}

void Batcher::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  changed_.notify_one();
}

void Batcher::run() {
  while (true) {
    std::vector<Work> works;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopped_ || !queue_.empty(); });
      if (queue_.empty()) return;
      works = take();
    }
    if (!works.empty()) compute(std::move(works));
  }
}

/// In order, as long as they fit: the first one's model computes those that ask for it. Of one that is larger than a
/// batch the model makes several.
std::vector<Work> Batcher::take() {
  metrics_.dropped(std::erase_if(queue_, [](const Work& work) { return !work.is_wanted(); }));
  std::vector<Work> works;
  std::int64_t tokens = 0;
  for (auto each = queue_.begin(); each != queue_.end();) {
    if (!works.empty() && each->model != works.front().model) {
      ++each;
      continue;
    }
    tokens += tokens_of(*each);
    if (!works.empty() && tokens > options_.max_tokens) break;
    works.push_back(std::move(*each));
    each = queue_.erase(each);
  }
  return works;
}

/// One line for a model: each request that it fails has its own answer.
void Batcher::tell_once(const ServedModel& model, const std::string& fault) {
  const auto [told, is_first] = told_.try_emplace(model.name(), model.version());
  if (!is_first && std::exchange(told->second, model.version()) == model.version()) return;
  io::tell("error: {}: version {}: {}", model.name(), model.version(), fault);
}

void Batcher::compute(std::vector<Work> works) {
  struct QueryIndex {
    std::size_t work, query;  // of the work
  };
  std::vector<QueryIndex> indices;
  std::vector<inference::Query> queries;
  std::vector<Outcome> outcomes(works.size());
  std::vector<std::size_t> missing;  // answers of each work; 0 as soon as it is done
  std::size_t tokens = 0;
  for (std::size_t w = 0; w < works.size(); ++w) {
    metrics_.queued(seconds_since(works[w].since));
    tokens += static_cast<std::size_t>(tokens_of(works[w]));
    missing.push_back(works[w].queries.size());
    outcomes[w].answers.resize(works[w].queries.size());
    for (std::size_t q = 0; q < works[w].queries.size(); ++q) {
      indices.push_back({w, q});
      queries.push_back(std::move(works[w].queries[q]));
    }
  }
  const auto finish = [&](std::size_t w, Outcome outcome) {
    missing[w] = 0;
    works[w].done(std::move(outcome));
  };
  const auto begin = Clock::now();
  try {
    inference::run_all(works.front().model->predictor(), queries, options_.max_tokens,
                       [&](std::size_t i, std::span<const inference::Outputs> outputs) {
                         const auto [w, q] = indices[i];
                         if (missing[w] == 0) return;  // another query of the work failed
                         // Only a request that is alone is larger than a batch.
                         if (works.size() == 1 && !works[w].is_wanted()) throw Left{};
                         try {
                           outcomes[w].answers[q] = inference::answer(queries[i], outputs);
                         } catch (const std::exception&) {
                           Outcome outcome = failed();
                           tell_once(*works[w].model, outcome.error);
                           return finish(w, std::move(outcome));
                         }
                         if (--missing[w] == 0) finish(w, std::move(outcomes[w]));
                       });
  } catch (const Left&) {
    metrics_.dropped(1);
  } catch (const std::exception&) {
    const Outcome outcome = failed();
    io::tell("error: {}", outcome.error);
    for (std::size_t w = 0; w < works.size(); ++w)
      if (missing[w] > 0) finish(w, outcome);
  }
  metrics_.batch(works.size(), queries.size(), tokens, seconds_since(begin));
}

}  // namespace bertrand::serving
