// A request in any dialect, with models behind it: method and target in the first line, then the body. Whatever it is,
// the answer is JSON with a status, and what a model says of it becomes one too.
#include <doctest/doctest.h>

#include "bert/network/bert.h"
#include "fuzz/fuzz.h"
#include "serving/asked.h"

using namespace bertrand;

namespace {

struct Served {
  fuzz::Directory directory;
  support::Asked ask;

  Served() {
    const auto put = [&](const char* name, const auto& write) {
      write(directory.path() / name);
      ask.models.put(support::open_served(directory.path() / name, name));
    };
    put("kind", [](const auto& place) { support::write_small_classifier(place); });
    put("words", [](const auto& place) { support::write_small_labeller(place, {"O", "B-X", "I-X"}); });
    put("sense", [](const auto& place) {
      support::write_small_head<support::SmallEncoder>(place, {.architecture = "BertModel"});
    });
    put("squad", [](const auto& place) {
      support::write_small_head<bert::ForQuestionAnswering>(place, {.architecture = "BertForQuestionAnswering"});
    });
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Served served;
  const std::string text(fuzz::text_of(data, size));
  const std::size_t line = std::min(text.find('\n'), size), space = std::min(text.find(' '), line),
                    target = std::min(space + 1, line);
  const auto response =
      served.ask(text.substr(0, space), text.substr(target, line - target), text.substr(std::min(line + 1, size)));
  fuzz::require(response.status >= 200 && response.status < 600, "a status");
  if (response.content_type == "application/json" && !response.body.empty())
    fuzz::require(nlohmann::json::accept(response.body), response.body.c_str());
  return 0;
}
