#include "distributed/processes.h"

#include <dlfcn.h>

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string_view>

#include "io/error.h"
#include "io/host_name.h"

namespace bertrand::distributed {
namespace {

/// How many processes the launcher says it started: mpirun and srun tell those they start through the environment.
/// mpirun's word comes first: within Slurm it starts its own helpers with srun.
int launched_processes() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"})
    if (const char* text = std::getenv(name)) {
      int count = 1;
      std::from_chars(text, text + std::string_view(text).size(), count);
      return count;
    }
  return 1;
}

std::unique_ptr<Collective> join_processes(const ProcessOptions& options) {
  const int count = launched_processes();
  if (count == 1) return nullptr;
  const auto path = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "libbertrand_mpi.so";
  if (!std::filesystem::exists(path))
    fail(
        Failure::usage,
        "mpi: {} processes were started together, but libbertrand_mpi.so was not found beside the program; hint: build "
        "with libopenmpi-dev installed",
        count);
  // Open MPI looks up its own symbols among the global ones.
  void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (!module) fail(Failure::io, "{}: mpi: cannot be loaded: {}", path.string(), dlerror());
  using Join = Collective* (*)(double timeout);
  const auto join = reinterpret_cast<Join>(dlsym(module, "bertrand_join_mpi"));
  if (!join)
    fail(Failure::io, "{}: mpi: expected the function bertrand_join_mpi; built from another version?", path.string());
  std::unique_ptr<Collective> processes(join(options.timeout));
  // A launcher that MPI does not know starts processes that do not find each other; each would train by itself.
  if (processes->size() != count)
    fail(Failure::usage,
         "mpi: expected the {} processes that were started together, got {}; hint: srun --mpi=pmix, or mpirun", count,
         processes->size());
  return processes;
}

}  // namespace

void with_processes(const ProcessOptions& options, const std::function<void(Collective* processes)>& body) {
  const auto processes = join_processes(options);
  try {
    body(processes.get());
  } catch (const Error& error) {
    if (!processes || error.failure() == Failure::interrupted) throw;  // all processes stop together
    processes->abort(error.what());
    // The launcher mixes the lines of all processes. Those of a failure of another one name it anyway.
    if (processes->rank() == 0 || error.failure() == Failure::distributed) throw;
    throw Error(error.failure(),
                fmt::format("process {} (host {}): {}", processes->rank(), io::host_name(), error.what()));
  } catch (const std::exception& error) {
    if (processes) processes->abort(error.what());
    throw;
  }
}

}  // namespace bertrand::distributed
