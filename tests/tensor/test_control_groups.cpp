// The limits of the control groups around a process: of its memory and of its processors.
#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "support/program.h"
#include "tensor/backends.h"
#include "tensor/control_groups.h"
#include "tensor/cpu/memory.h"

using namespace bertrand;
using bertrand::cpu::group_left;
namespace fs = std::filesystem;

TEST_CASE("the memory that is left is the least of all control groups around the process") {
  const support::TemporaryDirectory directory;
  const auto group = [&](const std::string& name, const std::string& max, std::size_t current, std::size_t files) {
    fs::create_directories(directory / name);
    support::write_text(directory / (name + "/memory.max"), max + "\n");
    support::write_text(directory / (name + "/memory.current"), std::to_string(current) + "\n");
    support::write_text(directory / (name + "/memory.stat"), "anon 7\ninactive_file " + std::to_string(files) + "\n");
  };
  const auto left = [&](const std::string& of_process) {
    support::write_text(directory / "self", of_process);
    return group_left({.of_process = directory / "self", .root = directory / "groups"});
  };
  fs::create_directories(directory / "groups/a.slice/none");  // the outermost one has no limit
  group("groups/a.slice", "max", 900, 0);
  CHECK(left("0::/a.slice/none\n") > std::size_t{1} << 40);
  group("groups/a.slice/job", "1000", 400, 100);
  group("groups/a.slice/job/step one", "max", 300, 0);
  CHECK(left("0::/a.slice/job\n") == 700);
  CHECK(left("4:memory:/a.slice\n0::/a.slice/job/step one\n") == 700);
  CHECK(left("0::/a.slice/job/gone\n") == 700);
  CHECK(left("4:memory:/a.slice/job\n0::/\n") > std::size_t{1} << 40);
  group("groups/a.slice/job/step one", "500", 450, 0);
  CHECK(left("0::/a.slice/job/step one\n") == 50);
  group("groups/a.slice", "600", 900, 0);  // it was lowered
  CHECK(left("0::/a.slice/job/step one\n") == 0);
  group("groups", "800", 10, 0);      // what a container sees, which may be told a path of its host
  group("groups/memory", "1", 1, 0);  // somebody's group that has the name of a controller
  for (const char* const path : {"", "0::/\n", "0::/docker/4711\n", "0::/../other\n", "0::", "0:\n0"})
    CHECK(left(path) == 790);
}

TEST_CASE("the memory that control groups of version 1 leave, which have a tree of their own, is found") {
  const support::TemporaryDirectory directory;
  const auto group = [&](const std::string& name, const std::string& limit, int used, int files) {
    fs::create_directories(directory / name);
    support::write_text(directory / (name + "/memory.limit_in_bytes"), limit + "\n");
    support::write_text(directory / (name + "/memory.usage_in_bytes"), std::to_string(used) + "\n");
    support::write_text(directory / (name + "/memory.stat"),
                        "inactive_file 5\ntotal_inactive_file " + std::to_string(files) + "\n");
  };
  const auto left = [&](const std::string& of_process) {
    support::write_text(directory / "self", of_process);
    return group_left({.of_process = directory / "self", .root = directory / "groups"});
  };
  group("groups/memory/slurm/job_7", "1000", 400, 100);
  group("groups/memory/slurm/job_7/step_0", "9223372036854771712", 300, 0);  // no limit
  for (const char* const path : {"9:memory:/slurm/job_7\n0::/\n", "4:memory:/slurm/job_7/step_0\n1:cpu:/\n",
                                 "4:hugetlb,memory:/slurm/job_7\n"}) {
    CAPTURE(path);
    CHECK(left(path) == 700);
  }
  for (const char* const path : {"9:memory:/slurm\n", "9:memory2:/slurm/job_7\n", "9:cpu:/slurm/job_7\n", "memory\n"}) {
    CAPTURE(path);
    CHECK(left(path) > std::size_t{1} << 40);
  }
  group("groups/memory", "500", 100, 0);  // what a container sees
  CHECK(left("9:memory:/docker/4711\n") == 400);
}

TEST_CASE("no more cores are used than the quota of the smallest control group around the process, and one at least") {
  const support::TemporaryDirectory directory;
  const int all = available_cores({.of_process = directory / "none", .root = directory / "none"});
  const auto cores = [&](const std::string& of_process) {
    support::write_text(directory / "self", of_process);
    return available_cores({.of_process = directory / "self", .root = directory / "groups"});
  };
  fs::create_directories(directory / "groups/job/step");
  fs::create_directories(directory / "groups/cpu/job");
  CHECK(all >= 1);
  CHECK(cores("0::/job/step\n") == all);
  support::write_text(directory / "groups/job/cpu.max", "max 100000\n");
  CHECK(cores("0::/job/step\n") == all);
  support::write_text(directory / "groups/job/cpu.max", "9999999999999 1000\n");  // more than an int has
  CHECK(cores("0::/job/step\n") == all);
  support::write_text(directory / "groups/job/cpu.max", "160000 100000\n");
  CHECK(cores("0::/job/step\n") == std::min(all, 2));
  support::write_text(directory / "groups/job/step/cpu.max", "20000 100000\n");
  CHECK(cores("0::/job/step\n") == 1);
  CHECK(cores("0::/job\n") == std::min(all, 2));
  support::write_text(directory / "groups/cpu/job/cpu.cfs_period_us", "50000\n");
  for (const auto& [quota, expected] : {std::pair{"-1", all}, {"25000", 1}, {"100000", std::min(all, 2)}}) {
    support::write_text(directory / "groups/cpu/job/cpu.cfs_quota_us", std::string(quota) + "\n");
    CHECK(cores("3:cpu,cpuacct:/job\n") == expected);
  }
}
