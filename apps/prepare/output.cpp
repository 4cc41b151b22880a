#include "apps/prepare/output.h"

#include "bert/objectives/program_files.h"
#include "io/error.h"
#include "io/file_replacer.h"

namespace bertrand::prepare {

void check_output(const std::filesystem::path& output, bool overwrite) {
  training::refuse_file_of_run("output", output, objectives::program_files());
  if (!overwrite && std::filesystem::exists(output) && io::is_replaceable(output))
    fail(Failure::usage, "--output: expected a name that no file has, got {}; hint: --overwrite replaces it",
         output.string());
}

}  // namespace bertrand::prepare
