// Run-time modules: where they are looked for, and which are refused.
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "io/version.h"
#include "support/paths.h"
#include "support/program.h"
#include "tensor/backends.h"
#include "tensor/module.h"

using namespace bertrand;

namespace {

/// Sets BERTRAND_MODULES while it lives.
struct Modules {
  explicit Modules(const std::string& folder) { setenv("BERTRAND_MODULES", folder.c_str(), 1); }
  ~Modules() { unsetenv("BERTRAND_MODULES"); }
};

const std::string kOtherBuilds = BERTRAND_OTHER_BUILDS;

}  // namespace

TEST_CASE("a module of another build is refused by one line that names both builds") {
  const Modules modules(kOtherBuilds);
  CHECK(build_hash().size() == 16);
  try {
    Module::open("of_another_build", {.needed_for = "test"});
    FAIL("it was opened");
  } catch (const Error& error) {
    CHECK(error.failure() == Failure::io);
    CHECK(error.what() == "test: " + kOtherBuilds + "/libbertrand_of_another_build.so: expected a module of build " +
                              std::string(build_hash()) +
                              ", as the program is, got one of build 0123456789abcdef; hint: build or install both "
                              "together");
  }
}

TEST_CASE("BERTRAND_MODULES is the one folder that modules are looked for in if it is set") {
  CHECK_FALSE(Module::find("of_another_build"));
  CHECK_FALSE(runnable_cpu_kernels().empty());
  const Modules modules(kOtherBuilds);
  CHECK(Module::find("of_another_build"));
  CHECK(Module::names() == std::vector<std::string>{"of_another_build"});
  CHECK(runnable_cpu_kernels().empty());
  CHECK_THROWS_WITH_AS(open_cpu(), doctest::Contains(kOtherBuilds.c_str()), Error);
}

TEST_CASE("files that are not named as modules are no modules") {
  const support::TemporaryDirectory folder;
  for (const char* name : {"libbertrand_b.so", "libbertrand_a.so", "libbertrand_notes.txt", "libother.so", "x.so"})
    std::ofstream(folder / name) << "no module";
  const Modules modules((folder / "").string());
  CHECK(Module::names() == std::vector<std::string>{"a", "b"});
}

TEST_CASE("a module that is missing or no module is an error with what to do") {
  CHECK_THROWS_WITH_AS(
      Module::open("nothing", {.failure = Failure::usage, .needed_for = "test", .hint_missing = "build it"}),
      doctest::Contains("; hint: build it"), Error);
  const support::TemporaryDirectory folder;
  std::ofstream(folder / "libbertrand_broken.so") << "no module";
  const Modules modules((folder / "").string());
  CHECK_THROWS_WITH_AS(Module::open("broken", {.needed_for = "test", .hint_broken = "mend it"}),
                       doctest::Contains("; hint: mend it"), Error);
}

TEST_CASE("a function that a module lacks is an error that names both") {
  const Module module = Module::open("cpu_" + runnable_cpu_kernels().front(), {.needed_for = "test"});
  CHECK_THROWS_WITH_AS(module.function<void()>("bertrand_nothing"),
                       (module.path().string() + ": expected the function bertrand_nothing, found none").c_str(),
                       Error);
}
