// What the checks of indices on the CPU take of a training step (tensor/index_check.h): all those that a step makes, of
// the ids, types and positions of its tokens, forward and backward, its labels, and the offsets in each layer. A line
// of JSON for each configuration; `bench_step CONFIG 2 train` says how long the step itself takes.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "tensor/index_check.h"

using namespace bertrand;

namespace {

struct Step {
  const char* config;
  Dim sequences, length, layers, labels;
};

/// Seconds, the median of many times.
double seconds_of_checks(const Step& step) {
  constexpr int kTimes = 201;
  const Dim tokens = step.sequences * step.length, vocabulary = 30522;
  std::vector<std::int32_t> ids, labels, offsets;
  for (Dim i = 0; i < tokens; ++i) ids.push_back(static_cast<std::int32_t>(i * 7919 % vocabulary));
  for (Dim i = 0; i < step.labels; ++i) labels.push_back(static_cast<std::int32_t>(i * 104729 % vocabulary));
  for (Dim i = 0; i <= step.sequences; ++i) offsets.push_back(static_cast<std::int32_t>(i * step.length));
  std::vector<double> times;
  for (int time = 0; time < kTimes; ++time) {
    const auto begin = std::chrono::steady_clock::now();
    for (int table = 0; table < 3; ++table) {  // words, segments, positions
      check_indices(kGatherRows, ids.data(), tokens, 0, vocabulary);
      check_indices(kScatterRows, ids.data(), tokens, 0, vocabulary);
    }
    check_indices(kLabels, labels.data(), step.labels, std::numeric_limits<std::int32_t>::min(), vocabulary);
    check_indices(kLabelsBackward, labels.data(), step.labels, std::numeric_limits<std::int32_t>::min(), vocabulary);
    for (Dim layer = 0; layer < step.layers; ++layer) {
      check_offsets(kOffsets, offsets.data(), step.sequences, tokens, step.length);
      check_offsets(kOffsetsBackward, offsets.data(), step.sequences, tokens, step.length);
    }
    times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  std::ranges::nth_element(times, times.begin() + kTimes / 2);
  return times[kTimes / 2];
}

}  // namespace

int main() {
  // The shapes of bench_step; a label for about every seventh token.
  for (const Step& step : {Step{"tiny", 32, 128, 2, 640}, Step{"base", 8, 128, 12, 160}})
    fmt::print("{{\"config\":\"{}\",\"index_checks_us\":{:.2f}}}\n", step.config, 1e6 * seconds_of_checks(step));
}
