// The server put together: sockets on one thread, models on another, and a third that looks for newer versions.
#pragma once
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "serving/batcher.h"
#include "serving/http.h"
#include "serving/routes.h"

namespace bertrand::serving {

/// A directory whose sub-directories are versions of a model, named by numbers.
struct VersionedModel {
  std::string name;
  std::filesystem::path base;
  std::chrono::milliseconds look_every{10'000};  ///< for a newer one
};

struct ServiceOptions {
  std::vector<ModelPlace> models;  ///< at least one, or `versioned`
  std::optional<VersionedModel> versioned;
  ModelOptions model;  ///< of all of them
  HttpOptions http;
  Batcher::Options batches;
  std::size_t max_texts = 1024;              ///< of a request
  std::size_t max_request_bytes = 64 << 20;  ///< of all requests and answers together
};

class Service {
 public:
  /// Loads the models and listens. Throws Error.
  explicit Service(const ServiceOptions& options);

  std::string url() const { return http_.url(); }
  /// The tasks of the models. Before run().
  std::set<inference::Head> heads() const;
  /// The most memory that the process takes, with its parts, as one line.
  std::string memory_plan() const;
  /// As HttpServer::run() and HttpServer::stop().
  void run();
  void stop() { http_.stop(); }

 private:
  void handle(const Request& request, const std::shared_ptr<Exchange>& exchange);
  void ask(Question question, const Request& request, const std::shared_ptr<Exchange>& exchange,
           Clock::time_point since);
  void respond(const Request& request, Response response, const std::shared_ptr<Exchange>& exchange,
               Clock::time_point since);
  /// A version that was loaded, and why the newest one that was tried was not.
  struct Loaded {
    ModelPointer model = nullptr;
    std::exception_ptr fault = nullptr;
  };
  Loaded load_after(std::int64_t served);
  void load_first();
  void look_for_versions();
  void load_newest();
  void complain(std::int64_t served, const std::exception_ptr& fault);

  const ServiceOptions options_;
  Metrics metrics_;
  Budget budget_;
  std::mutex models_mutex_;
  Models models_;
  std::string complaint_;                                // about the newest version, which is said once
  std::map<std::filesystem::path, std::string> failed_;  // the states in which versions did not load
  HttpServer http_;
  Batcher batcher_;  // goes first: what it holds belongs to connections
  std::mutex end_mutex_;
  std::condition_variable ended_;
  bool end_ = false;
};

}  // namespace bertrand::serving
