// The learning rate of a run of 100 steps, 10 of them warm-up, by each schedule.
#include <cstdio>
#include <utility>
#include <vector>

#include "optim/schedule.h"

using bertrand::optim::Schedule;

int main() {
  const std::vector<std::pair<const char*, Schedule>> schedules = {{"linear", Schedule::linear},
                                                                   {"google", Schedule::google},
                                                                   {"polynomial", Schedule::polynomial},
                                                                   {"cosine", Schedule::cosine},
                                                                   {"constant", Schedule::constant}};
  const std::vector<int> steps{0, 1, 5, 9, 10, 11, 50, 99};
  std::printf("%-11s", "step");
  for (const int step : steps) std::printf(" %5d", step);
  std::printf("\n");
  for (const auto& [name, schedule] : schedules) {
    std::printf("%-11s", name);
    for (const int step : steps)
      std::printf(" %5.2f",
                  bertrand::optim::learning_rate(
                      {.schedule = schedule, .learning_rate = 1, .warmup_steps = 10, .total_steps = 100}, step));
    std::printf("\n");
  }
}
