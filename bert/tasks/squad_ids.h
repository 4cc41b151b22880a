// Ids that come twice, noticed with 8 bytes for each.
#pragma once
#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <vector>

namespace bertrand::tasks {

/// Keeps a hash of each id that is added. If two are equal, the file is read once more, and only ids with these hashes
/// are compared.
class SquadIds {
 public:
  /// False if the id came before, which the second reading alone knows.
  bool add(const std::string& id) {
    const std::size_t hash = std::hash<std::string>{}(id);
    if (!is_second_) hashes_.push_back(hash);
    return !is_second_ || !watched_.contains(hash) || ids_.insert(id).second;
  }

  /// Ends the first reading. Whether there must be a second one.
  bool begin_second_reading() {
    is_second_ = true;
    std::ranges::sort(hashes_);
    for (std::size_t i = 1; i < hashes_.size(); ++i)
      if (hashes_[i] == hashes_[i - 1]) watched_.insert(hashes_[i]);
    hashes_ = {};
    return !watched_.empty();
  }

 private:
  bool is_second_ = false;
  std::vector<std::size_t> hashes_;
  std::set<std::size_t> watched_;
  std::set<std::string> ids_;
};

}  // namespace bertrand::tasks
