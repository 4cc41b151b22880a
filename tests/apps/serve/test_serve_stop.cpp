// A server that is stopped while it loads newer versions of its model.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "apps/serve/run.h"
#include "support/small_heads.h"
#include "support/soon.h"

using namespace bertrand;
namespace fs = std::filesystem;

namespace {

int times(const std::string& what, const std::string& text) {
  int count = 0;
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("a signal while newer versions are loaded ends the server before the next one") {
  constexpr int kVersions = 1500;  // all of them take seconds
  const support::TemporaryDirectory directory;
  const fs::path spoiled = directory / "spoiled", said = directory / "said";
  support::write_small_classifier(directory / "first/1");
  support::write_small_classifier(spoiled);  // loaded up to its last check, and it warns before that
  support::write_text(spoiled / "vocab.txt", support::read_text(spoiled / "vocab.txt") + "\xFF");
  support::spoil_embedding(spoiled / "model.safetensors", 0);
  fs::create_directory(directory / "next");
  for (int i = 2; i <= kVersions; ++i) fs::create_directory_symlink(spoiled, directory / ("next/" + std::to_string(i)));
  fs::create_directory_symlink("first", directory / "base");
  fs::create_directory_symlink("next", directory / "new-base");

  const pid_t child = fork();
  if (child == 0) {
    const int file = open(said.c_str(), O_WRONLY | O_CREAT, 0600);
    for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) dup2(file, stream);
    serve::Options options{.base = directory / "base", .name = "half"};
    options.look_every = 0.01;
    options.service.http.port = 0;
    options.service.model.machine.threads = 1;
    serve::run(options);
    _exit(0);
  }
  const auto is_said = [&](const char* what) {
    return support::soon([&] { return fs::exists(said) && support::read_text(said).find(what) != std::string::npos; });
  };
  CHECK(is_said("listening on "));
  fs::rename(directory / "new-base", directory / "base");
  CHECK(is_said("not UTF-8"));
  kill(child, SIGTERM);
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(status == 0);
  CHECK(times("not UTF-8", support::read_text(said)) < kVersions - 1);
}
