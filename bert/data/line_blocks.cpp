// Blocks of whole lines.
#include "bert/data/line_blocks.h"

#include <algorithm>
#include <utility>

#include "io/error.h"
#include "io/line_source.h"

namespace bertrand::data {
namespace {

constexpr std::size_t kReadBytes = std::size_t{1} << 18;  // at a time: a pipe gives less

}  // namespace

LineBlocks::LineBlocks(const std::filesystem::path& file)
    : name_(file.empty() ? "standard input" : file.string()), source_(file, "text") {}

std::size_t LineBlocks::read(char* out, std::size_t size) {
  const std::size_t count = source_.read_some(out, size);
  if (!source_.damage().empty())
    fail(Failure::input, "{}: expected whole compressed data, got {}; hint: is it cut short?", name_, source_.damage());
  return count;
}

bool LineBlocks::skip(std::uint64_t bytes) {
  std::string passed(kReadBytes, '\0');
  while (bytes > 0) {
    const std::size_t count = read(passed.data(), std::min<std::uint64_t>(bytes, passed.size()));
    if (count == 0) return false;
    bytes -= count;
    count_lines(std::string_view(passed).substr(0, count));
  }
  return true;
}

void LineBlocks::count_lines(std::string_view bytes) {
  lines_ += static_cast<std::uint64_t>(std::ranges::count(bytes, '\n'));
}

/// Only the first line can be longer than a block, so no other is looked at.
std::optional<LineBlock> LineBlocks::next(std::size_t bytes) {
  std::string block = std::exchange(rest_, {});
  block.reserve(bytes + kReadBytes);
  std::size_t searched = block.size();  // up to here there is no line end
  while (!ended_) {
    const std::size_t before = block.size();
    block.resize(before + std::clamp<std::size_t>(bytes, 1, kReadBytes));
    const std::size_t count = read(block.data() + before, block.size() - before);
    block.resize(before + count);
    ended_ = count == 0;
    if (block.size() < bytes) continue;
    const std::string_view unsearched = std::string_view(block).substr(searched);
    if (searched + std::min(unsearched.find('\n'), unsearched.size()) > io::LineSource::kLongest)
      fail(Failure::input, "{}:{}: expected a line of at most {} bytes, got more", name_, lines_ + 1,
           io::LineSource::kLongest);
    const std::size_t end = unsearched.rfind('\n');
    if (end != std::string_view::npos) {
      rest_ = block.substr(searched + end + 1);
      block.resize(searched + end + 1);
      break;
    }
    searched = block.size();  // for speed alone: a long line is looked through once
  }
  if (block.empty()) return {};
  const std::uint64_t before = lines_;
  count_lines(block);
  return LineBlock{.text = std::move(block), .lines_before = before};
}

}  // namespace bertrand::data
