#include "bert/objectives/pretraining_samples.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "bert/tasks/metrics.h"
#include "io/json.h"
#include "io/markdown.h"
#include "io/split.h"
#include "tensor/ops.h"

namespace bertrand::objectives {
namespace {

constexpr std::size_t kGuesses = 3;

std::vector<std::string_view> words_of(std::string_view vocabulary) {
  std::vector<std::string_view> words;
  for (const std::string_view line : io::lines_of(vocabulary))
    words.push_back(line.substr(0, line.size() - line.ends_with('\r')));
  return words;
}

double rounded(double probability) { return std::round(probability * 1e4) / 1e4; }

}  // namespace

training::Samples samples_of(std::span<const data::PretrainingExample> examples, const Tensor& logits,
                             std::string_view vocabulary) {
  const std::vector<std::string_view> words = words_of(vocabulary);
  const auto word = [&](std::int32_t id) {
    const auto at = static_cast<std::size_t>(id);
    return at < words.size() ? words[at] : std::string_view("[UNK]");
  };
  const std::vector<float> all = ops::to_host<float>(logits);
  const auto width = static_cast<std::size_t>(logits.shape()[1]);
  io::Json list = io::Json::array();
  std::string markdown = "| example | place | is | taken for |\n|---|---|---|---|\n";
  std::size_t row = 0;
  for (const data::PretrainingExample& example : examples) {
    io::Json tokens = io::Json::array(), masked = io::Json::array();
    for (const std::int32_t id : example.token_ids) tokens.push_back(word(id));
    for (std::size_t m = 0; m < example.masked_ids.size(); ++m, ++row) {
      const std::vector<double> shares = tasks::softmax(std::span(all).subspan(row * width, width));
      io::Json guesses = io::Json::array();
      std::string said;
      for (const std::size_t id : tasks::largest(std::span(shares).first(std::min(width, words.size())), kGuesses)) {
        guesses.push_back({words[id], rounded(shares[id])});
        said += fmt::format("{}{} {:.1f} %", said.empty() ? "" : ", ", io::markdown_cell(words[id]), 100 * shares[id]);
      }
      const std::int32_t truth = example.masked_ids[m];
      masked.push_back({{"position", example.masked_positions[m]},
                        {"truth", word(truth)},
                        {"probability", rounded(shares[static_cast<std::size_t>(truth)])},
                        {"guesses", std::move(guesses)}});
      markdown += fmt::format("| {} | {} | {} | {} |\n", list.size() + 1, example.masked_positions[m],
                              io::markdown_cell(word(truth)), said);
    }
    list.push_back({{"tokens", std::move(tokens)}, {"masked", std::move(masked)}});
  }
  return {.json = io::json_text(list), .markdown = std::move(markdown)};
}

}  // namespace bertrand::objectives
