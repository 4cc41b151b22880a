// Instances written to a temporary file and read back in another order.
#include "bert/data/instance_spill.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <vector>

#include "io/descriptor.h"
#include "io/error.h"

namespace bertrand::data {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 20;

struct Header {
  std::uint64_t a_begin, b_begin;
  std::uint32_t a_count, b_count;
  std::uint32_t is_random_next, masked;
};

}  // namespace

InstanceSpill::InstanceSpill(io::Files& files, const std::filesystem::path& file, std::size_t most_masked)
    : file_(files, file), most_masked_(most_masked), bytes_(sizeof(Header) + most_masked * sizeof(MaskedToken)) {}

void InstanceSpill::append(const Instance& instance) {
  check(instance.masked.size() <= most_masked_, "spill: expected at most {} masked tokens, got {}", most_masked_,
        instance.masked.size());
  const Header header{.a_begin = instance.a_begin,
                      .b_begin = instance.b_begin,
                      .a_count = instance.a_count,
                      .b_count = instance.b_count,
                      .is_random_next = instance.is_random_next,
                      .masked = static_cast<std::uint32_t>(instance.masked.size())};
  const std::size_t end = buffer_.size() + bytes_;
  buffer_.append(reinterpret_cast<const char*>(&header), sizeof header);
  buffer_.append(reinterpret_cast<const char*>(instance.masked.data()), instance.masked.size() * sizeof(MaskedToken));
  buffer_.resize(end);
  if (buffer_.size() >= kBufferBytes) flush();  // for memory alone
}

void InstanceSpill::finish() { flush(); }

void InstanceSpill::flush() {
  file_.append(std::as_bytes(std::span(buffer_)));
  buffer_.clear();
}

void InstanceSpill::read(std::uint64_t number, Instance& instance) const {
  thread_local std::vector<char> bytes;
  bytes.resize(bytes_);
  const std::uint64_t offset = number * bytes_;
  const ssize_t count = io::read_at(file_.descriptor(), bytes.data(), bytes_, offset);
  if (count != static_cast<ssize_t>(bytes_))
    fail(Failure::io, "{}@{}: read: {}", file_.path().string(), offset,
         count < 0 ? std::strerror(errno) : "unexpected end of the file");
  Header header;
  std::memcpy(&header, bytes.data(), sizeof header);
  instance.a_begin = header.a_begin;
  instance.b_begin = header.b_begin;
  instance.a_count = header.a_count;
  instance.b_count = header.b_count;
  instance.is_random_next = header.is_random_next != 0;
  instance.masked.resize(header.masked);
  if (header.masked > 0)  // memcpy takes no null, not even for no bytes
    std::memcpy(instance.masked.data(), bytes.data() + sizeof header, header.masked * sizeof(MaskedToken));
}

}  // namespace bertrand::data
