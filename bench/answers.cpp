// What the readers of tables and tensors make of bytes, for the scripts in bench/peers that compare them with others'
// answers. usage: bench_answers csv|tsv|safetensors DIRECTORY
// Reads inputs from standard input, each with 4 bytes for its length before it, and writes for each a line of JSON:
// what was read, or {"error": "…"}. DIRECTORY holds the input of the moment.
#include <cstdio>
#include <fstream>

#include "bert/tasks/table.h"
#include "io/error.h"
#include "io/json.h"
#include "io/safetensors.h"

using namespace bertrand;

namespace {

io::Json table(const std::string& bytes, tasks::TableFormat format) {
  const tasks::Table read = tasks::parse_table(bytes, "t", format, {.header = false, .skip_bad_rows = true});
  io::Json rows = io::Json::array();
  read.rows.for_each([&](const tasks::Row& row) { rows.push_back(row.cells); });
  return {{"rows", rows}, {"skipped", read.skipped.size()}};
}

io::Json tensors(const std::string& bytes, const std::filesystem::path& directory) {
  const std::filesystem::path path = directory / "m.safetensors";
  std::ofstream(path, std::ios::binary) << bytes;
  const io::SafetensorsFile file(path);
  io::Json all = io::Json::object();
  for (const io::SafetensorsEntry& entry : file.entries()) {
    std::uint64_t sum = 0;
    for (const std::byte byte : entry.bytes) sum = 31 * sum % 1'000'003 + static_cast<unsigned>(byte);
    all[entry.name] = {entry.dtype_name, entry.dims, entry.bytes.size(), sum};
  }
  return {{"tensors", all}};
}

io::Json answer(const std::string& kind, const std::string& bytes, const std::filesystem::path& directory) {
  try {
    if (kind == "safetensors") return tensors(bytes, directory);
    return table(bytes, kind == "csv" ? tasks::TableFormat::csv : tasks::TableFormat::tsv);
  } catch (const Error& error) {
    return {{"error", error.what()}};
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: bench_answers csv|tsv|safetensors DIRECTORY\n", stderr);
    return 2;
  }
  std::string bytes;
  for (std::uint32_t size = 0; std::fread(&size, sizeof size, 1, stdin) == 1;) {
    bytes.resize(size);
    if (std::fread(bytes.data(), 1, size, stdin) != size) return 3;
    const std::string line = io::json_text(answer(argv[1], bytes, argv[2])) + "\n";
    std::fwrite(line.data(), 1, line.size(), stdout);
  }
  return 0;
}
