// prepare dump: a feature a line, `name:v v v`.
#include "apps/prepare/dump.h"

#include <charconv>
#include <cmath>
#include <string>
#include <utility>

#include "bert/data/tf_example.h"
#include "io/error.h"
#include "io/say.h"

namespace bertrand::prepare {
namespace {

constexpr std::size_t kFlushBytes = std::size_t{1} << 20;

void append_number(std::string& out, std::int64_t value) {
  char digits[24];
  digits[0] = ' ';
  const char* const end = std::to_chars(digits + 1, digits + sizeof digits, value).ptr;
  const bool is_first = out.back() == ':';
  const char* const begin = is_first ? digits + 1 : digits;
  out.append(begin, end);
}

void append_values(std::string& out, const std::vector<std::int64_t>& values, const std::string&) {
  for (const std::int64_t value : values) append_number(out, value);
}

void append_values(std::string& out, const std::vector<float>& values, const std::string& place) {
  for (const float value : values) {
    if (!(std::fabs(value) < 9.2e18f))
      fail(Failure::input, "{}: example: expected a finite number, got {}", place, value);
    append_number(out, static_cast<std::int64_t>(value));
  }
}

void append_values(std::string& out, const std::vector<std::string>& values, const std::string&) {
  for (const std::string& value : values) {
    for (const char byte : value) append_number(out, static_cast<unsigned char>(byte));
  }
}

void append_values(std::string&, std::monostate, const std::string&) {}

}  // namespace

void write_dump(const DumpOptions& options) {
  std::string out, record;
  for (const std::filesystem::path& file : options.files) {
    io::RecordReader reader(file, options.on_corrupt);
    while (reader.next(record)) {
      const std::string place = reader.place();
      for (const auto& [name, feature] : data::parse_example(record, place)) {
        out.append(name).push_back(':');
        std::visit([&](const auto& values) { append_values(out, values, place); }, feature);
        out.push_back('\n');
      }
      if (out.size() >= kFlushBytes) io::write_stdout(std::exchange(out, {}));
    }
    if (reader.skipped() > 0) io::warn("{}", reader.skipped_text());
  }
  io::write_stdout(out);
}

}  // namespace bertrand::prepare
