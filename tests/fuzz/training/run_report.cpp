// The files of a run directory as a report reads them, with NULs between them.
#include "bert/report/report.h"
#include "fuzz/fuzz.h"

using namespace bertrand;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::Directory directory;
  std::string_view text = fuzz::text_of(data, size);
  for (const char* name : {"run_config.json", "metrics.jsonl", "eval_results.json", "eval_rows.jsonl", "samples.jsonl",
                           "eval_report.tsv", "profile.json"}) {
    const std::string_view file = text.substr(0, text.find('\0'));
    directory.write(name, file);
    text.remove_prefix(std::min(text.size(), file.size() + 1));
  }
  fuzz::read_or_refuse([&] {
    const io::Json numbers = report::numbers_of_run(directory.path(), {});
    io::parse_json(io::json_text(numbers), {.name = "the numbers of a page"});
  });
  return 0;
}
