# How the packages are compiled: `cmake -C packaging/hardened.cmake …`. What an attacker can do with a mistake in a
# reader of outside bytes becomes less: a stack or a buffer that overflows ends the program, the tables of the linker
# cannot be written, and the standard library checks its indices. Control-flow marks are left out: the start files of
# Debian 12 have none, and one part without them turns them off for the whole program.
set(hardening "-fstack-protector-strong -fstack-clash-protection -D_FORTIFY_SOURCE=2 -D_GLIBCXX_ASSERTIONS")
set(CMAKE_C_FLAGS "${hardening}" CACHE STRING "")
set(CMAKE_CXX_FLAGS "${hardening}" CACHE STRING "")
foreach(kind EXE SHARED MODULE)
  set(CMAKE_${kind}_LINKER_FLAGS "-Wl,-z,relro,-z,now" CACHE STRING "")
endforeach()
