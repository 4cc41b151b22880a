// Tables of examples: TSV, CSV and JSON lines, each with and without names of columns.
#include "bert/tasks/table.h"
#include "fuzz/fuzz.h"

using namespace bertrand;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using tasks::TableFormat;
  for (const TableFormat format : {TableFormat::tsv, TableFormat::csv, TableFormat::jsonl})
    for (const bool lenient : {false, true})
      fuzz::read_or_refuse([&] {
        const tasks::Table table =
            tasks::parse_table(fuzz::text_of(data, size), "t", format, {.header = !lenient, .skip_bad_rows = lenient});
        table.rows.for_each([&](const tasks::Row& row) {
          for (std::size_t column = 0; column < table.width; ++column)
            fuzz::require(row.cell(column).find('\0') == std::string::npos, "a cell without NUL");
        });
        for (const std::string& name : table.columns) fuzz::read_or_refuse([&] { table.find_column(name); });
      });
  return 0;
}
