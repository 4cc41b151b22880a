// The flags of a table as options of CLI11.
#pragma once
#include "training/run/flag_table.h"

namespace CLI {
class App;
}

namespace bertrand::cli {

/// Declares all flags of the table, under their headings. What they read into must outlive `app`.
void add_table(CLI::App& app, const training::FlagTable& table);

}  // namespace bertrand::cli
