#include "training/run/published_model.h"

#include <fmt/format.h>

#include "io/error.h"
#include "io/say.h"
#include "training/run/checkpoint.h"
#include "training/run/run_files.h"

namespace bertrand::training {

void PublishedModel::publish(BestModel& best) {
  publish_model(files_, output_, objective_, parameters_);
  best.crc32c = InputFile::of(output_ / kWeights).crc32c;
}

std::string PublishedModel::fault(const BestModel& best) const {
  if (best.crc32c == 0) return "";
  const std::filesystem::path file = output_ / kWeights;
  const bool there = std::filesystem::is_regular_file(file);
  if (there && InputFile::of(file).crc32c == best.crc32c) return "";
  return fmt::format("{}: expected the best model, as it was after step {}, got {}", file.string(), best.step,
                     there ? "another or a damaged one" : "none");
}

std::filesystem::path PublishedModel::checkpoint(const BestModel& best) const {
  return checkpoint_path(output_, best.step);
}

bool PublishedModel::is_in_checkpoint(const BestModel& best) const {
  return verify_checkpoint(checkpoint(best)).empty();
}

void PublishedModel::mend(BestModel& best, const std::string& hint) {
  const std::string found = fault(best);
  if (found.empty()) return;
  if (!is_in_checkpoint(best)) fail(Failure::model, "{}; hint: {}", found, hint);
  io::warn("{}; taken from {}", found, checkpoint(best).filename().string());
  objective_.load(checkpoint(best), parameters_);
  publish(best);
}

}  // namespace bertrand::training
