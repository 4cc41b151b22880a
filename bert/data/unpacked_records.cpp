#include "bert/data/unpacked_records.h"

#include "io/temporary_name.h"

namespace bertrand::data {

void UnpackedRecords::append(std::string_view record) {
  held_ += record;
  size_ += record.size();
  if (!place_.empty() && held_.size() > most_held_) spill();
}

void UnpackedRecords::spill() {
  if (!file_) file_ = std::make_unique<io::UnnamedFile>(io::Files::system(), io::temporary_name(place_));
  file_->append(std::as_bytes(std::span(held_)));
  held_.clear();
}

void UnpackedRecords::finish() {
  if (!file_) return;
  spill();
  std::string().swap(held_);  // clear() would keep the memory
  mapped_ = std::make_unique<const io::MappedFile>(file_->name_to_map());
  file_.reset();  // the mapping needs no descriptor, and a run may have many files
}

std::string_view UnpackedRecords::at(std::uint64_t offset, std::size_t bytes) const {
  if (!mapped_) return std::string_view(held_).substr(offset, bytes);
  return {reinterpret_cast<const char*>(mapped_->bytes().subspan(offset, bytes).data()), bytes};
}

void UnpackedRecords::let_go() const {
  if (mapped_) mapped_->let_go();  // for memory alone
}

}  // namespace bertrand::data
