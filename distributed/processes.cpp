#include "distributed/processes.h"

#include <charconv>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <utility>

#include "io/say.h"
#include "tensor/module.h"

namespace bertrand::distributed {
namespace {

std::unique_ptr<Collective> join_processes(const ProcessOptions& options) {
  const int count = launched().processes;
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

/// The number in a variable of the environment, or `otherwise`.
int number_of(const char* variable, int otherwise) {
  const std::string_view text = std::getenv(variable) ? std::getenv(variable) : "";
  std::from_chars(text.data(), text.data() + text.size(), otherwise);
  return otherwise;
}

}  // namespace

/// mpirun and srun tell those they start through the environment. mpirun's word comes first: within Slurm it starts its
/// own helpers with srun.
Launched launched() {
  constexpr std::pair<const char*, const char*> kVariables[] = {{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
                                                                {"PMI_SIZE", "PMI_RANK"},
                                                                {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID"}};
  for (const auto& [processes, rank] : kVariables)
    if (std::getenv(processes)) return {.processes = number_of(processes, 1), .rank = number_of(rank, 0)};
  return {};
}

void warn(const std::string& text) {
  if (launched().rank == 0) io::warn("{}", text);
}

void with_processes(const ProcessOptions& options, const std::function<void(Collective* processes)>& body) {
  const auto processes = join_processes(options);
  try {
    body(processes.get());
  } catch (const std::exception& error) {
    if (processes && is_interruption(error)) processes->interrupt();
    else if (processes) processes->abort(error.what());
    throw;
  }
}

}  // namespace bertrand::distributed
