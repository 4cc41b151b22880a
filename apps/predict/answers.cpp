// Answers written.
#include "apps/predict/answers.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "io/error.h"

namespace bertrand::predict {

Answers::Answers(const std::filesystem::path& file) {
  if (!file.empty()) file_ = std::make_unique<io::FileReplacer>(io::Files::system(), file);
}

void Answers::write(std::string_view lines) {
  has_some_ = has_some_ || !lines.empty();
  if (file_) return file_->write(lines);
  if (std::fwrite(lines.data(), 1, lines.size(), stdout) != lines.size() || std::fflush(stdout) != 0)
    fail(Failure::io, "standard output: write: {}", std::strerror(errno));
}

void Answers::publish_some() {
  if (has_some_) publish();
}

void Answers::publish() {
  if (file_) file_->publish();
}

}  // namespace bertrand::predict
