#include "distributed/processes.h"

#include <charconv>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "io/host_name.h"
#include "tensor/module.h"

namespace bertrand::distributed {
namespace {

std::unique_ptr<Collective> join_processes(const ProcessOptions& options) {
  const int count = launched_processes();
  if (count == 1) return nullptr;
  const Module mpi = Module::open("mpi", {.failure = Failure::usage,
                                          .needed_for = fmt::format("mpi: {} processes were started together", count),
                                          .hint_missing = "build with libopenmpi-dev installed",
                                          .hint_broken = "is Open MPI installed?",
                                          .symbols = Module::Symbols::global});
  std::unique_ptr<Collective> processes(
      mpi.function<Collective*(double timeout)>("bertrand_join_mpi")(options.timeout));
  // A launcher that MPI does not know starts processes that do not find each other; each would train by itself.
  if (processes->size() != count)
    fail(Failure::usage,
         "mpi: expected the {} processes that were started together, got {}; hint: srun --mpi=pmix, or mpirun", count,
         processes->size());
  return processes;
}

}  // namespace

/// mpirun and srun tell those they start through the environment. mpirun's word comes first: within Slurm it starts its
/// own helpers with srun.
int launched_processes() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"})
    if (const char* text = std::getenv(name)) {
      int count = 1;
      std::from_chars(text, text + std::string_view(text).size(), count);
      return count;
    }
  return 1;
}

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
