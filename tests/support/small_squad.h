// Questions in SQuAD's JSON that a very small model learns: the answer is the colour in the context.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace support {

/// Contexts have 13 tokens or more of the small model's vocabulary. With `version_2` every fourth question has no
/// answer, as its context has no colour.
inline nlohmann::json small_squad(int questions, bool version_2) {
  const std::vector<std::string> colours = {"red", "green", "blue"};
  nlohmann::json paragraphs = nlohmann::json::array();
  for (int i = 0; i < questions; ++i) {
    std::string context = "the birds";
    for (int more = 0; more < i % 5; ++more) context += " two";
    const bool impossible = version_2 && i % 4 == 3;
    const std::string colour = colours[static_cast<std::size_t>(i % 3)];
    context += impossible ? ". the one" : ". the one " + colour;
    context += " fish. the birds. two fishs.";
    nlohmann::json question = {
        {"id", "q" + std::to_string(i)}, {"question", "the fish?"}, {"answers", nlohmann::json::array()}};
    if (version_2) question["is_impossible"] = impossible;
    if (!impossible) question["answers"].push_back({{"text", colour}, {"answer_start", context.find(colour)}});
    paragraphs.push_back({{"context", context}, {"qas", {question}}});
  }
  return {{"version", version_2 ? "v2.0" : "1.1"}, {"data", {{{"title", "animals"}, {"paragraphs", paragraphs}}}}};
}

}  // namespace support
