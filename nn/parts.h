// The parts of a model that are trained apart: not at all, or at a share of the learning rate.
#pragma once
#include <string>

namespace bertrand::nn {

/// A part of a model that has a name for people. Parameters of no part are the head.
struct Part {
  std::string name;      ///< embeddings, 0, 1, …
  std::string prefix;    ///< begins the names of its parameters
  int below = 0;         ///< how many steps it is below the head: 1 for the last layer, 0 for what lies beside the head
  bool is_idle = false;  ///< no loss depends on it: it is frozen, so that decay leaves it as it is
};

}  // namespace bertrand::nn
