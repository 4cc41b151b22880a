// Finds, opens and checks run-time modules.
#include "tensor/module.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "io/version.h"

namespace bertrand {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "libbertrand_", kSuffix = ".so";

std::vector<fs::path> search_folders() {
  if (const char* const given = std::getenv("BERTRAND_MODULES"); given && *given) return {given};
  // Programs of others that link this library find the modules where they were installed.
  return {fs::read_symlink("/proc/self/exe").parent_path(), BERTRAND_INSTALLED_MODULES};
}

std::string file_name(const std::string& name) { return std::string(kPrefix) + name + std::string(kSuffix); }

std::string with_hint(const std::string& hint) { return hint.empty() ? "" : "; hint: " + hint; }

}  // namespace

std::optional<fs::path> Module::find(const std::string& name) {
  for (const fs::path& folder : search_folders()) {
    std::error_code unreadable;
    if (const fs::path path = folder / file_name(name); fs::exists(path, unreadable)) return path;
  }
  return {};
}

std::vector<std::string> Module::names() {
  std::vector<std::string> names;
  for (const fs::path& folder : search_folders()) {
    std::error_code unreadable;
    for (const auto& entry : fs::directory_iterator(folder, unreadable)) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with(kPrefix) && name.ends_with(kSuffix))
        names.push_back(name.substr(kPrefix.size(), name.size() - kPrefix.size() - kSuffix.size()));
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::string Module::folders() {
  std::string text;
  for (const fs::path& folder : search_folders()) text += (text.empty() ? "" : ", ") + folder.string();
  return text;
}

Module Module::open(const std::string& name, const Options& options) {
  const std::optional<fs::path> path = find(name);
  if (!path)
    fail(options.failure, "{}: expected the module {} in {}, found none{}", options.needed_for, file_name(name),
         folders(), with_hint(options.hint_missing));
  void* const handle =
      dlopen(path->c_str(), RTLD_NOW | (options.symbols == Symbols::global ? RTLD_GLOBAL : RTLD_LOCAL));
  if (!handle) fail(options.failure, "{}: {}{}", options.needed_for, dlerror(), with_hint(options.hint_broken));
  const auto hash = reinterpret_cast<const char* (*)()>(dlsym(handle, "bertrand_build_hash"));
  const std::string_view found = hash ? hash() : "none";
  if (found != build_hash())
    fail(Failure::io,
         "{}: {}: expected a module of build {}, as the program is, got one of build {}; hint: build or "
         "install both together",
         options.needed_for, path->string(), build_hash(), found);
  return {*path, handle};
}

void* Module::look_up(const char* name) const {
  void* const function = dlsym(handle_, name);
  if (!function) fail(Failure::io, "{}: expected the function {}, found none", path_.string(), name);
  return function;
}

}  // namespace bertrand
