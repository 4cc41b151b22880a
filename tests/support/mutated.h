// The switch of the changes that scripts/mutate.sh makes: it compiles each of them as (mutated(ID) ? changed :
// unchanged). One is in force in a process whose environment has MUTANT=ID. If MUTANTS_REACHED names a file, the
// process adds a line with the ID of each change that it reaches.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <type_traits>

inline bool mutant_in_force(int id) {
  struct Environment {
    int mutant = 0;
    const char* reached = std::getenv("MUTANTS_REACHED");
    Environment() {
      if (const char* asked = std::getenv("MUTANT")) mutant = std::atoi(asked);
    }
  };
  static const Environment environment;
  static std::array<std::atomic<bool>, 1 << 16> seen;  // some 12,000 changes are possible
  if (environment.reached && !seen[id].load(std::memory_order_relaxed) && !seen[id].exchange(true)) {
    // Opened for each line: tests count the files that a process has open.
    const int file = ::open(environment.reached, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    ::dprintf(file, "%d\n", id);
    ::close(file);
  }
  return id == environment.mutant;
}

// What is computed while it is compiled stays as it is.
constexpr bool mutated(int id) { return !std::is_constant_evaluated() && mutant_in_force(id); }
