// Where a tensor's memory lies.
#pragma once
#include <string>

namespace bertrand {

/// Prints as cpu or cuda:0.
struct Device {
  enum class Kind { cpu, cuda };
  Kind kind = Kind::cpu;
  int index = 0;

  bool operator==(const Device&) const = default;
  std::string name() const { return kind == Kind::cpu ? "cpu" : "cuda:" + std::to_string(index); }
};

}  // namespace bertrand
