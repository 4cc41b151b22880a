// The learning rate as a function of the step. `done` counts updates already made, so the first step has done = 0.
#pragma once
#include <cstdint>

namespace bertrand::optim {

enum class Schedule {
  google,      ///< linear warm-up from 0, then linear decay from step 0's line: jumps down at the end of the warm-up
  linear,      ///< linear warm-up, then linear to 0: continuous (Hugging Face)
  polynomial,  ///< p = (done+1)/total, w = warm-up/total: rate·p/w, then rate·√(1−p) (NVIDIA's PyTorch trainer)
  cosine,      ///< linear warm-up, then half a cosine to 0 (Loshchilov and Hutter 2017, without restarts; Hugging Face)
  constant     ///< linear warm-up, then constant
};

struct ScheduleOptions {
  Schedule schedule = Schedule::linear;
  double learning_rate = 1e-4;
  std::int64_t warmup_steps = 0;
  std::int64_t total_steps = 1;
  double warmup_share = 0;  ///< w of polynomial, if it is no whole number of steps; 0: warmup_steps / total_steps
};

/// Never below 0. A warm-up longer than the whole run is warm-up to its end, as in Google's and Hugging Face's
/// trainers.
double learning_rate(const ScheduleOptions& options, std::int64_t done);

}  // namespace bertrand::optim
