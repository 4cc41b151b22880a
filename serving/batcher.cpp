// The queue and what the model's thread does with it.
#include "serving/batcher.h"

#include <exception>
#include <new>
#include <utility>

#include "io/error.h"
#include "io/say.h"

namespace bertrand::serving {
namespace {

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

void Batcher::drop_unwanted() {
  metrics_.dropped(std::erase_if(queue_, [](const Job& job) { return !job.work.is_wanted(); }));
}

bool Batcher::has_room() {
  if (queue_.size() >= options_.max_waiting) drop_unwanted();
  return queue_.size() < options_.max_waiting;
}

bool Batcher::is_full() {
  const std::lock_guard lock(mutex_);
  return !has_room();
}

bool Batcher::put(Work work) {
  const std::lock_guard lock(mutex_);
  if (!has_room()) return false;
  queue_.push_back({.work = std::move(work)});
  changed_.notify_one();
  return true;
}

void Batcher::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  changed_.notify_one();
}

void Batcher::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopped_ || !queue_.empty(); });
    if (queue_.empty()) return;
    std::list<Job> jobs = take();
    lock.unlock();
    try {
      if (!jobs.empty()) compute(jobs);
    } catch (const std::exception&) {
      jobs.clear();  // no memory to say so: the clients are told that it is too late
    }
    lock.lock();
    queue_.splice(queue_.end(), jobs);  // those that are not at their end
  }
}

/// As much as a batch has room for, and a sequence at least.
Batcher::Part Batcher::next_of(const Job& job) const {
  Part part;
  std::size_t s = job.outputs.size();
  for (std::size_t q = job.answers.size(); q < job.work.queries.size(); ++q, s = 0) {
    const std::vector<bert::Sequence>& sequences = job.work.queries[q].sequences;
    for (; s < sequences.size(); ++s) {
      const std::int64_t tokens = part.tokens + std::ssize(sequences[s].token_ids);
      if (tokens > options_.max_tokens && part.sequences > 0) return part;
      part = {.sequences = part.sequences + 1, .tokens = tokens};
    }
  }
  return part;
}

/// In order, as long as they fit: the first one's model computes those that ask for it.
std::list<Batcher::Job> Batcher::take() {
  drop_unwanted();
  std::list<Job> jobs;
  std::int64_t tokens = 0;
  for (auto each = queue_.begin(); each != queue_.end();) {
    const auto job = each++;
    if (!jobs.empty() && job->work.model != jobs.front().work.model) continue;
    job->next = next_of(*job);
    tokens += job->next.tokens;
    if (!jobs.empty() && tokens > options_.max_tokens) break;
    jobs.splice(jobs.end(), queue_, job);
  }
  return jobs;
}

/// One line for a model: each request that it fails has its own answer.
void Batcher::tell_once(const ServedModel& model, const std::string& fault) {
  const auto [told, is_first] = told_.try_emplace(model.name(), model.version());
  if (!is_first && std::exchange(told->second, model.version()) == model.version()) return;
  io::tell("error: {}: version {}: {}", model.name(), model.version(), fault);
}

/// Leaves those jobs that are not at their end.
void Batcher::compute(std::list<Job>& jobs) {
  const auto begin = Clock::now();
  const std::size_t requests = jobs.size();
  std::size_t tokens = 0, sequences = 0;
  for (const Job& job : jobs) {
    if (job.answers.empty() && job.outputs.empty()) metrics_.queued(seconds_since(job.work.since));
    tokens += static_cast<std::size_t>(job.next.tokens);
    sequences += job.next.sequences;
  }
  try {
    std::vector<bert::Sequence> batch;
    for (Job& job : jobs) {
      std::size_t q = job.answers.size(), s = job.outputs.size();
      for (std::size_t i = 0; i < job.next.sequences; ++i) {
        std::vector<bert::Sequence>& of_query = job.work.queries[q].sequences;
        batch.push_back(std::move(of_query[s]));
        if (++s == of_query.size()) ++q, s = 0;
      }
    }
    std::vector<inference::Outputs> outputs = jobs.front().work.model->predictor().run(batch);
    std::span<inference::Outputs> rest = outputs;
    for (auto job = jobs.begin(); job != jobs.end();) {
      const bool has_ended = take_in(*job, rest.first(job->next.sequences));
      rest = rest.subspan(job->next.sequences);
      job = has_ended ? jobs.erase(job) : std::next(job);
    }
  } catch (const std::exception&) {
    const Outcome outcome = failed();
    io::tell("error: {}", outcome.error);
    for (const Job& job : jobs) job.work.done(outcome);
    jobs.clear();
  }
  metrics_.batch(requests, sequences, tokens, seconds_since(begin));
}

/// Takes what the model says of the next sequences of a request. True if that was its end.
bool Batcher::take_in(Job& job, std::span<inference::Outputs> outputs) {
  const std::vector<inference::Query>& queries = job.work.queries;
  try {
    for (inference::Outputs& of_sequence : outputs) {
      const inference::Query& query = queries[job.answers.size()];
      job.outputs.push_back(std::move(of_sequence));
      if (job.outputs.size() < query.sequences.size()) continue;
      job.answers.push_back(inference::answer(query, job.outputs));
      job.outputs.clear();
    }
    if (job.answers.size() < queries.size()) return false;
    job.work.done({.answers = std::move(job.answers)});
  } catch (const std::exception&) {
    Outcome outcome = failed();
    if (outcome.status == 500) tell_once(*job.work.model, outcome.error);
    job.work.done(std::move(outcome));
  }
  return true;
}

}  // namespace bertrand::serving
