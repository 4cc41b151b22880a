#include "distributed/gpus.h"

#include <cstdlib>

#include "tensor/module.h"

namespace bertrand::distributed {
namespace {

/// NVLS adds up in the switches between GPUs, and the same numbers do not always give the same bits there (NCCL's
/// issues 1497 and 2360). NCCL reads this at its first call. Who sets it to 1 gives up equal bits for speed.
void leave_switches_out() { setenv("NCCL_NVLS_ENABLE", "0", /*overwrite=*/0); }

}  // namespace

NcclModule::NcclModule(bool emulated) {
  leave_switches_out();
  const std::string suffix = emulated ? "_emulated" : "";
  const Module nccl = Module::open("nccl" + suffix, {.failure = Failure::usage,
                                                     .needed_for = "--device: expected one GPU, several need NCCL",
                                                     .hint_missing = emulated ? "build with -DBERTRAND_TESTS=ON"
                                                                              : "build with libnccl-dev installed",
                                                     .hint_broken = "is NCCL installed?"});
  const Module cuda = Module::open("cuda" + suffix, {.failure = Failure::usage, .needed_for = "--device"});
  id_ = nccl.function<std::remove_pointer_t<decltype(id_)>>("bertrand_nccl_id");
  join_ = nccl.function<std::remove_pointer_t<decltype(join_)>>("bertrand_join_nccl");
  stream_of_ = cuda.function<std::remove_pointer_t<decltype(stream_of_)>>("bertrand_cuda_stream");
}

std::string NcclModule::new_id() const { return *std::unique_ptr<std::string>(id_()); }

std::unique_ptr<Collective> NcclModule::join(NcclPlace place) const {
  place.stream = stream_of_(place.backend);
  return std::unique_ptr<Collective>(join_(place));
}

}  // namespace bertrand::distributed
