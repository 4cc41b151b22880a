#include "bert/tasks/spilled_rows.h"

#include <fmt/format.h>
#include <unistd.h>

#include "bert/tasks/encode.h"

namespace bertrand::tasks {
namespace {

std::filesystem::path name(const std::filesystem::path& directory, const char* what) {
  return directory / fmt::format("rows.{}.tmp-{}", what, ::getpid());
}

}  // namespace

SpilledRows::SpilledRows(io::Files& files, const std::filesystem::path& directory)
    : files_{io::UnnamedFile(files, name(directory, "ids")), io::UnnamedFile(files, name(directory, "offsets")),
             io::UnnamedFile(files, name(directory, "lengths"))} {
  files_[1].append(std::as_bytes(std::span(&tokens_, 1)));
}

void SpilledRows::append(EncodedDataset& rows) {
  for (std::int64_t& offset : rows.offsets) offset += tokens_;
  tokens_ = rows.offsets.back();
  files_[0].append(std::as_bytes(std::span(rows.token_ids)));
  files_[1].append(std::as_bytes(std::span(rows.offsets).subspan(1)));
  files_[2].append(std::as_bytes(std::span(rows.first_lengths)));
  rows.token_ids.clear();
  rows.offsets.assign(1, 0);
  rows.first_lengths.clear();
}

void SpilledRows::finish() {
  for (std::size_t i = 0; i < files_.size(); ++i)
    mapped_[i] = std::make_unique<const io::MappedFile>(files_[i].name_to_map());
}

void SpilledRows::let_go() const {
  for (const auto& file : mapped_) file->let_go();
}

}  // namespace bertrand::tasks
