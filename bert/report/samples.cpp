#include "bert/report/samples.h"

#include <algorithm>
#include <string>
#include <vector>

#include "io/split.h"

namespace bertrand::report {
namespace {

/// Thrown for a line that is not as a run writes it.
struct Damaged {};

/// What has a fraction, or is larger than a whole number may be, cannot be converted.
std::int64_t whole_number(const io::Json& number) {
  if (!number.is_number_integer()) throw Damaged();
  return number.get<std::int64_t>();
}

/// The examples without what the model says: the same in every line.
io::Json questions_of(const io::Json& examples) {
  io::Json questions = io::Json::array();
  for (const io::Json& example : examples) {
    io::Json masked = io::Json::array();
    for (const io::Json& mask : example.at("masked"))
      masked.push_back({{"position", whole_number(mask.at("position"))},
                        {"truth", mask.at("truth").get<std::string>()},
                        {"probabilities", io::Json::array()},
                        {"guesses", io::Json::array()}});
    questions.push_back({{"tokens", example.at("tokens").get<std::vector<std::string>>()}, {"masked", masked}});
  }
  return questions;
}

void add_answers(const io::Json& examples, io::Json& questions) {
  for (std::size_t i = 0; i < examples.size(); ++i) {
    io::Json& masked = questions[i]["masked"];
    for (std::size_t m = 0; m < masked.size(); ++m) {
      const io::Json& mask = examples[i]["masked"][m];
      masked[m]["probabilities"].push_back(mask.at("probability").get<double>());
      io::Json guesses = io::Json::array();
      for (const io::Json& guess : mask.at("guesses"))
        guesses.push_back({guess.at(0).get<std::string>(), guess.at(1).get<double>()});
      masked[m]["guesses"].push_back(std::move(guesses));
    }
  }
}

}  // namespace

io::Json samples_of(std::string_view lines, std::size_t most, std::size_t& damaged) {
  damaged = 0;
  std::vector<io::Json> whole;
  io::Json questions;
  for (const std::string_view text : io::lines_of(lines)) {
    const auto line = io::try_parse_json(text);
    try {
      if (!line) throw Damaged();
      io::Json trial = questions_of(line->at("examples"));
      if (!whole.empty() && trial != questions) throw Damaged();
      add_answers(line->at("examples"), trial);
      whole_number(line->at("step"));
      if (whole.empty()) questions = questions_of(line->at("examples"));
      whole.push_back(*line);
    } catch (const Damaged&) {
      ++damaged;
    } catch (const io::Json::exception&) {  // it lacks a key, or has another type there
      ++damaged;
    }
  }
  if (whole.empty()) return io::Json::object();
  io::Json steps = io::Json::array();
  const std::size_t shown = std::min(most, whole.size());
  for (std::size_t k = 0; k < shown; ++k) {
    const io::Json& line = whole[shown < 2 ? whole.size() - 1 : k * (whole.size() - 1) / (shown - 1)];
    steps.push_back(line["step"]);
    add_answers(line["examples"], questions);
  }
  return {{"steps", std::move(steps)}, {"examples", std::move(questions)}};
}

}  // namespace bertrand::report
