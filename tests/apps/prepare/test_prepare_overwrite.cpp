#include <doctest/doctest.h>

#include "support/program.h"

using support::Outcome;
using support::read_text;
using support::run_program;
using support::write_text;
using Flags = std::vector<std::string>;

namespace {

/// A file of each kind that is read.
struct Setting {
  support::TemporaryDirectory directory;

  Setting() {
    write_text(directory / "v", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nc\n##a\n##b\n");
    write_text(directory / "t", "a b\nab c\n\nc c c\na\n");
    write_text(directory / "q", R"({"data": [{"paragraphs": [{"context": "a b", "qas": [
        {"id": "1", "question": "c", "answers": [{"text": "a", "answer_start": 0}]}]}]}]})");
  }
  Outcome run(const Flags& command, const Flags& outputs, const Flags& more = {}) const {
    Flags all = command;
    all.emplace_back("--output");
    all.insert(all.end(), outputs.begin(), outputs.end());
    all.insert(all.end(), more.begin(), more.end());
    return run_program("prepare", all);
  }
  Flags vocab() const { return {"vocab", "--input", directory / "t", "--size", "12"}; }
  Flags records() const { return {"records", "--input", directory / "t", "--vocab-file", directory / "v"}; }
  Flags squad() const { return {"squad", "--input", directory / "q", "--vocab-file", directory / "v"}; }
  Flags sentences() const { return {"sentences", "--input", directory / "t"}; }
};

}  // namespace

TEST_CASE("prepare replaces a file only if that is asked for") {
  const Setting setting;
  const std::string mine = setting.directory / "mine", free = setting.directory / "free";
  write_text(mine, "words\n");
  for (const Flags& command : {setting.vocab(), setting.records(), setting.squad(), setting.sentences()}) {
    CAPTURE(command[0]);
    const Outcome refused = setting.run(command, {mine});
    CHECK(refused.code == 2);
    CHECK(refused.error ==
          "error: --output: expected a name that no file has, got " + mine + "; hint: --overwrite replaces it\n");
    CHECK(read_text(mine) == "words\n");
  }
  const Outcome second = setting.run(setting.records(), {free, mine});
  CHECK(second.error.find(" got " + mine + ";") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(free));
  for (const Flags& command : {setting.vocab(), setting.records(), setting.squad()}) {
    CAPTURE(command[0]);
    REQUIRE(setting.run(command, {free}).code == 0);
    REQUIRE(setting.run(command, {mine}, {"--overwrite"}).code == 0);
    CHECK(read_text(mine) == read_text(free));
    std::filesystem::remove(free);
  }
}

TEST_CASE("prepare vocab writes to a device without a word") {
  const Setting setting;
  CHECK(setting.run(setting.vocab(), {"/dev/null"}).code == 0);
}
