// The one door for run-time modules: kernels of a device, collectives of a library. They are found and opened here, and
// a module of another build is refused.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "io/error.h"

namespace bertrand {

class Module {
 public:
  enum class Symbols { local, global };  ///< global: libraries that it brings find each other's functions (Open MPI)
  struct Options {
    Failure failure = Failure::io;  ///< what a module that is missing or cannot be opened deserves
    std::string needed_for;         ///< begins every message: "--device cuda"
    std::string hint_missing;       ///< what to do if there is no such file: "build with -DBERTRAND_CUDA=ON"
    std::string hint_broken;        ///< what to do if it cannot be opened
    Symbols symbols = Symbols::local;
  };

  /// Opens libbertrand_<name>.so; it stays open until the program ends. Throws Error(options.failure) if no folder has
  /// it or it cannot be opened, and Error(Failure::io) if it is of another build.
  static Module open(const std::string& name, const Options& options);
  /// Where the module is: in $BERTRAND_MODULES alone if that is set, else beside the program, else in lib/bertrand (on
  /// Debian lib/<multiarch>/bertrand) of the prefix that the build was configured for.
  static std::optional<std::filesystem::path> find(const std::string& name);
  /// The names of all modules that find() finds, sorted.
  static std::vector<std::string> names();
  /// The folders that find() looks in, as a text for messages.
  static std::string folders();

  /// An extern "C" function of the module. Throws Error(Failure::io) if there is none of this name.
  template <class Function>
  Function* function(const char* name) const {
    return reinterpret_cast<Function*>(look_up(name));
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  Module(std::filesystem::path path, void* handle) : path_(std::move(path)), handle_(handle) {}
  void* look_up(const char* name) const;

  std::filesystem::path path_;
  void* handle_;
};

}  // namespace bertrand
