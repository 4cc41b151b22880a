#include "distributed/gpus.h"

#include <dlfcn.h>

#include <filesystem>

#include "io/error.h"

namespace bertrand::distributed {

namespace {

/// The function of a module beside the program, which is opened if it is not yet.
template <class Function>
void look_up(Function& function, const std::filesystem::path& path, const char* name) {
  void* const module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!module) fail(Failure::usage, "--device: {}; hint: is NCCL installed?", dlerror());
  function = reinterpret_cast<Function>(dlsym(module, name));
  if (!function) fail(Failure::io, "{}: expected the function {}; built from another version?", path.string(), name);
}

}  // namespace

NcclModule::NcclModule(bool emulated) {
  const std::string suffix = emulated ? "_emulated.so" : ".so";
  const auto directory = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const auto nccl = directory / ("libbertrand_nccl" + suffix), cuda = directory / ("libbertrand_cuda" + suffix);
  if (!std::filesystem::exists(nccl))
    fail(Failure::usage,
         "--device: expected one GPU, several need {}, which was not found beside the program; hint: build with {}",
         nccl.filename().string(), emulated ? "-DBERTRAND_TESTS=ON" : "libnccl-dev installed");
  look_up(id_, nccl, "bertrand_nccl_id");
  look_up(join_, nccl, "bertrand_join_nccl");
  look_up(stream_of_, cuda, "bertrand_cuda_stream");
}

std::string NcclModule::new_id() const { return *std::unique_ptr<std::string>(id_()); }

std::unique_ptr<Collective> NcclModule::join(NcclPlace place) const {
  place.stream = stream_of_(place.backend);
  return std::unique_ptr<Collective>(join_(place));
}

}  // namespace bertrand::distributed
