#include "replica_sum/replica_sum.h"

#include "grader.h"

const char* const kHint =
    "if it is right for one thread only, the order depends on who adds; if it differs in the last digits for every "
    "number "
    "of threads, it is another order than the tree's (or a sum in double)";

namespace {

float part(std::size_t number, std::size_t entry) {
  return 1.0f / static_cast<float>(3 + 7 * number + entry % 11) - 0.01f * static_cast<float>(number % 3);
}

float tree(std::size_t first, std::size_t count, std::size_t entry) {
  if (count == 1) return part(first, entry);
  std::size_t left = 1;
  while (2 * left < count) left *= 2;
  return tree(first, left, entry) + tree(first + left, count - left, entry);
}

}  // namespace

void check(grader::Grader& grader) {
  for (const std::size_t count : {1, 2, 3, 5, 8, 13})
    for (const int threads : {1, 2, 3, 4, 20}) {
      constexpr std::size_t kEntries = 17;
      std::vector<std::vector<float>> parts(count, std::vector<float>(kEntries));
      std::vector<float> expected(kEntries);
      for (std::size_t entry = 0; entry < kEntries; ++entry) {
        for (std::size_t number = 0; number < count; ++number) parts[number][entry] = part(number, entry);
        expected[entry] = tree(0, count, entry);
      }
      grader.begin(std::to_string(count) + (count == 1 ? " part, " : " parts, ") + std::to_string(threads) +
                   (threads == 1 ? " thread" : " threads"));
      grader.same_bits(replica_sum(parts, threads), expected);
    }
}
