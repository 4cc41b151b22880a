// The outputs of a long prediction, kept in a file as they are computed, so that the prediction goes on where it was
// stopped. A TFRecord file: what the outputs are of, then a record of f32 for each part.
#pragma once
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "io/files.h"

namespace bertrand::objectives {

class KeptOutputs {
 public:
  struct Where {
    std::filesystem::path file;
    std::string identity;   ///< whatever decides the outputs, as text
    std::size_t width = 1;  ///< outputs of an example
    /// Called before anything is written: makes room. May be empty.
    std::function<void()> before_writing = {};
  };
  /// What becomes of a file that is there.
  enum class Earlier {
    ignore,        ///< it is not looked at
    resume_known,  ///< its outputs are taken if they are of this identity
    resume         ///< they are taken; of another identity they are an error
  };
  /// Takes what the file holds as far as it is whole, if `earlier` says so. Throws Error(Failure::usage) for outputs of
  /// another identity. Nothing is written yet.
  KeptOutputs(Where where, Earlier earlier, io::Files& files);

  /// The outputs of the first examples, in whole rows.
  const std::vector<float>& values() const { return values_; }
  std::int64_t rows() const { return std::ssize(values_) / static_cast<std::int64_t>(where_.width); }

  /// Drops what is kept beyond the first `rows` rows. Call it before append().
  void truncate(std::int64_t rows);
  /// Adds the next rows, durably.
  void append(std::span<const float> rows);
  /// The outputs are where they belong now.
  void remove();

 private:
  const Where where_;
  io::Files& files_;
  std::vector<float> values_;  // emptied by the first append()
  bool begun_ = false;
};

}  // namespace bertrand::objectives
