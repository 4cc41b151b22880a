// The control groups around a process, which limit its memory and its processors (man 7 cgroups).
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace bertrand {

/// Where they are described: `of_process` says which groups the process is in, `root` has all groups as directories.
struct ControlGroups {
  std::filesystem::path of_process = "/proc/self/cgroup", root = "/sys/fs/cgroup";
};

/// Calls visit(directory) for each group that may limit `controller`, which is "memory" or "cpu": in version 2, whose
/// groups limit everything, and in version 1, which has a tree for each controller. Some may be visited twice.
template <class Visit>
void for_each_control_group(const ControlGroups& where, std::string_view controller, Visit visit) {
  // All that a container sees, whatever path it is told.
  visit(where.root);
  std::ifstream in(where.of_process);
  for (std::string line; std::getline(in, line);) {  // NUMBER:CONTROLLER,…:PATH, in version 2 without a controller
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    std::string controllers = line.substr(first, second + 1 - first);
    std::ranges::replace(controllers, ',', ':');
    const bool second_version = controllers == "::";
    if (!second_version && controllers.find(fmt::format(":{}:", controller)) == std::string::npos) continue;
    std::filesystem::path group = second_version ? where.root : where.root / controller;
    visit(group);
    const std::string path = line.substr(second + 1);
    for (const std::filesystem::path& name : std::filesystem::path(path).relative_path()) visit(group /= name);
  }
}

}  // namespace bertrand
