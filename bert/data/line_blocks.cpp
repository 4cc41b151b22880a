// Blocks of whole lines.
#include "bert/data/line_blocks.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "io/error.h"
#include "io/input_files.h"

namespace bertrand::data {
namespace {

constexpr std::size_t kReadBytes = std::size_t{1} << 18;  // at a time: a pipe gives less

}  // namespace

LineBlocks::LineBlocks(const std::filesystem::path& file)
    : name_(file.empty() ? "standard input" : file.string()), descriptor_(STDIN_FILENO) {
  if (file.empty()) return;
  io::refuse_directory(file, "text", Failure::input);
  descriptor_ = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0)
    fail(errno == ENOENT ? Failure::input : Failure::io, "{}: open: {}", name_, std::strerror(errno));
}

LineBlocks::~LineBlocks() {
  if (descriptor_ != STDIN_FILENO) ::close(descriptor_);
}

bool LineBlocks::next(std::string& block, std::size_t bytes) {
  block.swap(rest_);
  rest_.clear();
  block.reserve(bytes);
  std::size_t searched = block.size();  // up to here there is no line end
  while (!ended_) {
    const std::size_t before = block.size();
    block.resize(before + std::clamp<std::size_t>(bytes, 1, kReadBytes));
    const ssize_t count = ::read(descriptor_, block.data() + before, block.size() - before);
    const int error = errno;
    block.resize(before + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    if (count < 0 && error == EINTR) continue;
    if (count < 0) fail(Failure::io, "{}: read: {}", name_, std::strerror(error));
    ended_ = count == 0;
    if (block.size() < bytes) continue;
    const std::size_t end = std::string_view(block).substr(searched).rfind('\n');
    if (end != std::string_view::npos) {
      rest_ = block.substr(searched + end + 1);
      block.resize(searched + end + 1);
      return true;
    }
    searched = block.size();
  }
  return !block.empty();
}

std::vector<std::string_view> split_lines(std::string_view lines, std::size_t parts) {
  std::vector<std::string_view> list;
  const std::size_t target = lines.size() / std::max<std::size_t>(parts, 1) + 1;
  while (!lines.empty()) {
    const std::size_t newline = lines.find('\n', std::min(target, lines.size()) - 1);
    const std::size_t size = newline == std::string_view::npos ? lines.size() : newline + 1;
    list.push_back(lines.substr(0, size));
    lines.remove_prefix(size);
  }
  return list;
}

}  // namespace bertrand::data
