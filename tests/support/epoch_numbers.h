// An epoch's order as a list.
#pragma once
#include <vector>

#include "training/run/data_order.h"

namespace support {

inline std::vector<std::int64_t> epoch_numbers(const bertrand::training::Settings& settings, std::int64_t epoch,
                                               std::int64_t examples) {
  const bertrand::training::EpochOrder order(settings, epoch, examples);
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = 0; i < order.size(); ++i) numbers.push_back(order[i]);
  return numbers;
}

}  // namespace support
