// How much of its inputs a run looks at before its first step.
#pragma once

namespace bertrand::data {

enum class InputCheck {
  all,    ///< every byte
  index,  ///< sizes, and a sample of each file (io/file_checksum.h)
  none    ///< sizes alone
};

}  // namespace bertrand::data
