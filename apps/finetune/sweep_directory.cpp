#include "apps/finetune/sweep_directory.h"

#include <fmt/format.h>

#include <set>

#include "bert/objectives/program_files.h"
#include "io/error.h"
#include "io/line_source.h"
#include "io/say.h"
#include "io/units.h"

namespace bertrand::finetune {
namespace {

namespace fs = std::filesystem;

/// The runs beside the table of a sweep that its rows name, and that are still there.
std::set<fs::path> runs_of(io::LineSource& rows, const fs::path& output) {
  std::set<fs::path> runs;
  for (std::string_view line; rows.next(line);) {
    const fs::path name = fs::path(line.substr(line.rfind('\t') + 1)).filename();
    if (name.string().find('=') != std::string::npos &&
        training::is_own_run_config(output / name / training::kRunConfig))
      runs.insert(output / name);
  }
  return runs;
}

}  // namespace

std::unique_ptr<training::RunDirectory> claim_directory(const training::Settings& settings,
                                                        const std::vector<std::string>& runs) {
  const fs::path& output = settings.output;
  const training::ProgramFiles names = objectives::program_files();
  auto directory = std::make_unique<training::RunDirectory>(output, training::ExistingRun::resume, names);
  for (const auto& entry : fs::directory_iterator(output)) {
    const std::string name = entry.path().filename().string();
    if (!training::is_account(name, names) && !training::is_temporary(name, names) &&
        training::belongs_to_run(entry.path(), names))
      fail(Failure::usage,
           "{}: expected a directory for a sweep, got one of a run, with {}; hint: name another --output",
           output.string(), name);
  }
  if (settings.resume || settings.overwrite) return directory;
  for (const std::string& name : runs)
    if (fs::exists(output / name))
      fail(Failure::usage,
           "{}: expected no run there, got {}; hint: --resume goes on with the sweep, --overwrite begins "
           "it anew",
           output.string(), name);
  for (const char* name : {kTable, kSeeds, kPage})
    if (fs::exists(output / name))
      fail(Failure::usage,
           "{}: expected no sweep there, got {}; hint: --resume goes on with it, --overwrite replaces it",
           output.string(), name);
  return directory;
}

void remove_earlier_runs(const Options& options, const training::RunDirectory& directory) {
  const fs::path table = directory.path() / kTable;
  if (!options.settings.overwrite || !fs::exists(table)) return;
  io::LineSource rows(table, "runs");
  std::string_view head;
  if (!rows.next(head) || !head.ends_with("\tbest\tdirectory")) return;  // a user's own
  // All are held before the first one goes.
  std::vector<std::unique_ptr<training::RunDirectory>> runs;
  for (const fs::path& run : runs_of(rows, directory.path())) {
    runs.push_back(std::make_unique<training::RunDirectory>(run, training::ExistingRun::overwrite, directory.names()));
    runs.back()->require_kept(options.files());
  }
  io::say(fmt::format("removing {} of the sweep before\n", io::counted(runs.size(), "run")));
  for (auto& run : runs) {
    run->clear();
    const fs::path path = run->path();
    run.reset();  // with the .lock in it
    std::error_code has_more;
    fs::remove(path, has_more);
  }
  for (const char* name : {kPage, kSeeds, kTable}) directory.files().remove_all(directory.path() / name);
}

void refuse_directory_of_sweep(const Options& options) {
  const fs::path& output = options.settings.output;  // empty if nothing is written
  if (!output.empty() && fs::exists(output / kTable))
    fail(Failure::usage, "{}: expected a directory for a run, got one of a sweep, with {}; hint: name another --output",
         output.string(), kTable);
}

}  // namespace bertrand::finetune
