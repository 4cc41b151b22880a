// Each schedule as its source writes it, jumps included.
#include "optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace bertrand::optim {

double learning_rate(const ScheduleOptions& options, std::int64_t done) {
  const auto s = static_cast<double>(done), warmup = static_cast<double>(options.warmup_steps),
             total = static_cast<double>(options.total_steps);
  const double base = options.learning_rate;
  const bool warming = done < options.warmup_steps;
  switch (options.schedule) {
    case Schedule::google: return warming ? base * s / warmup : base * (1 - std::min(s, total) / total);
    case Schedule::linear:
      return base * (warming ? s / warmup : std::max(0.0, total - s) / std::max(1.0, total - warmup));
    case Schedule::polynomial: {
      const double progress = (s + 1) / total, share = options.warmup_share > 0 ? options.warmup_share : warmup / total;
      if (progress < share) return base * progress / share;
      return base * std::sqrt(std::max(0.0, 1 - progress));
    }
    case Schedule::cosine: {
      if (warming) return base * s / warmup;
      const double progress = std::min(1.0, (s - warmup) / std::max(1.0, total - warmup));
      return base * (1 + std::cos(std::numbers::pi * progress)) / 2;
    }
    case Schedule::constant: return warming ? base * s / warmup : base;
  }
  return base;
}

}  // namespace bertrand::optim
