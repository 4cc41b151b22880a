// A TFRecord file: '=' and the file as it stands, which may be gzip; or any other byte, and records with a byte for
// their length, which are written with their checksums and must come back.
#include "io/tfrecord.h"

#include <vector>

#include "fuzz/io/tables.h"
#include "io/crc32c.h"

using namespace bertrand;

static std::vector<std::string> read(const std::filesystem::path& path, io::OnCorrupt on_corrupt) {
  std::vector<std::string> records;
  fuzz::read_or_refuse([&] {
    io::RecordReader reader(path, on_corrupt);
    std::string record;
    while (reader.next(record)) {
      if (!reader.is_compressed() && on_corrupt == io::OnCorrupt::stop)
        fuzz::require(io::read_record_at(path, reader.offset(), record.size(), io::crc32c(record)) == record,
                      "the record at its place");
      records.push_back(record);
    }
  });
  return records;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::Directory directory;
  std::string_view text = fuzz::text_of(data, size);
  if (fuzz::take_byte(text) == '=') {
    const auto path = directory.write("f.tfrecord", text);
    fuzz::read_or_refuse([&] { io::is_tfrecord(path); });
    const auto whole = read(path, io::OnCorrupt::stop), all = read(path, io::OnCorrupt::skip);
    fuzz::require(all.size() >= whole.size(), "no fewer records where damaged ones are skipped");
    return 0;
  }
  std::vector<std::string> records;
  std::string file;
  while (!text.empty()) {
    records.emplace_back(fuzz::take(text, fuzz::take_byte(text)));
    io::append_record(file, records.back());
  }
  fuzz::require(read(directory.write("f.tfrecord", file), io::OnCorrupt::stop) == records, "the records");
  return 0;
}
