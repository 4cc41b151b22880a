#include "bert/objectives/kept_outputs.h"

#include <algorithm>
#include <cstring>

#include "io/error.h"
#include "io/tfrecord.h"

namespace bertrand::objectives {
namespace {

std::string record_of(std::string_view bytes) {
  std::string record;
  io::append_record(record, bytes);
  return record;
}

/// Values in as many records as they need: a reader takes no longer ones.
std::string records_of(std::span<const float> values) {
  constexpr std::size_t kMost = io::kMostRecord / sizeof(float);
  std::string records;
  for (std::size_t begin = 0; begin < values.size(); begin += kMost) {
    const auto part = values.subspan(begin, std::min(kMost, values.size() - begin));
    records += record_of(std::string_view(reinterpret_cast<const char*>(part.data()), part.size_bytes()));
  }
  return records;
}

}  // namespace

KeptOutputs::KeptOutputs(Where where, Earlier earlier, io::Files& files) : where_(std::move(where)), files_(files) {
  if (earlier == Earlier::ignore || !std::filesystem::exists(where_.file)) return;
  io::RecordReader reader(where_.file, io::OnCorrupt::skip);
  std::string record;
  if (!reader.next(record)) return;  // stopped before the first part
  if (record != where_.identity && earlier == Earlier::resume_known) return;
  if (record != where_.identity)
    fail(Failure::usage,
         "{}: --resume: expected outputs of this model, file and these lengths, got those of another prediction; hint: "
         "remove that file, or name another --output",
         where_.file.string());
  while (reader.next(record) && reader.skipped() == 0) {  // what follows a gap belongs to other examples
    const std::size_t kept = values_.size();
    values_.resize(kept + record.size() / sizeof(float));
    std::memcpy(values_.data() + kept, record.data(), (values_.size() - kept) * sizeof(float));
  }
  values_.resize(values_.size() / where_.width * where_.width);
}

void KeptOutputs::truncate(std::int64_t rows) { values_.resize(static_cast<std::size_t>(rows) * where_.width); }

void KeptOutputs::append(std::span<const float> rows) {
  if (!std::exchange(begun_, true)) {
    if (where_.before_writing) where_.before_writing();
    io::replace_file(files_, where_.file, record_of(where_.identity) + records_of(values_));
    std::vector<float>().swap(values_);  // for memory alone: nobody asks for them any more
  }
  io::FileWriter writer(files_, where_.file, io::Opening::append);
  writer.write(records_of(rows));
  writer.finish();
}

void KeptOutputs::remove() { files_.remove_all(where_.file); }

}  // namespace bertrand::objectives
