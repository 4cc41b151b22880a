// Outputs that a run keeps beside it and takes up again.
#include "bert/objectives/kept_outputs.h"

#include <doctest/doctest.h>

#include "io/tfrecord.h"
#include "support/faulty_files.h"
#include "support/program.h"
#include "support/refusal.h"

using namespace bertrand;
using namespace bertrand::objectives;

namespace {

using Values = std::vector<float>;

/// Rows of two outputs.
struct Setting {
  support::TemporaryDirectory directory;
  KeptOutputs open(KeptOutputs::Earlier earlier = KeptOutputs::Earlier::resume,
                   const std::string& identity = "model") const {
    return {{.file = directory / "kept", .identity = identity, .width = 2}, earlier, io::Files::system()};
  }
  Values kept() const { return open().values(); }
};

std::string record(const Values& values) {
  std::string bytes;
  io::append_record(bytes, {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
  return bytes;
}

}  // namespace

TEST_CASE("rows that were kept are resumed as far as the run wants them and are not mixed with later ones") {
  const Setting setting;
  {
    KeptOutputs outputs = setting.open();
    CHECK(outputs.rows() == 0);
    outputs.append(Values{1, 2, 3, 4});
    outputs.append(Values{5, 6});
  }
  CHECK(setting.kept() == Values{1, 2, 3, 4, 5, 6});
  KeptOutputs resumed = setting.open();
  resumed.truncate(1);
  resumed.append(Values{7, 8});
  CHECK(setting.kept() == Values{1, 2, 7, 8});
  KeptOutputs(setting.open()).remove();
  CHECK_FALSE(std::filesystem::exists(setting.directory / "kept"));
}

TEST_CASE("rows that were added outlive a power failure") {
  const Setting setting;
  const support::TemporaryDirectory disk;
  support::RecordingFiles files(setting.directory / "");
  KeptOutputs outputs({.file = setting.directory / "kept", .identity = "model", .width = 2},
                      KeptOutputs::Earlier::resume, files);
  outputs.append(Values{1, 2});
  outputs.append(Values{3, 4});
  files.restore(files.calls(), support::Lost::everything, disk / "");
  CHECK(KeptOutputs({.file = disk / "kept", .identity = "model", .width = 2}, KeptOutputs::Earlier::resume,
                    io::Files::system())
            .values() == Values{1, 2, 3, 4});
}

TEST_CASE("room is made once, before the first rows are written") {
  const support::TemporaryDirectory directory;
  int calls = 0;
  const auto make_room = [&] {
    ++calls;
    CHECK_FALSE(std::filesystem::exists(directory / "kept"));
  };
  KeptOutputs outputs({.file = directory / "kept", .identity = "model", .before_writing = make_room},
                      KeptOutputs::Earlier::resume, io::Files::system());
  CHECK(calls == 0);
  outputs.append(Values{1});
  outputs.append(Values{2});
  CHECK(calls == 1);
}

TEST_CASE("a run that does not resume takes nothing of the file of an earlier one") {
  const Setting setting;
  setting.open().append(Values{1, 2});
  KeptOutputs anew = setting.open(KeptOutputs::Earlier::ignore);
  CHECK(anew.rows() == 0);
  anew.append(Values{3, 4});
  CHECK(setting.kept() == Values{3, 4});
}

TEST_CASE("outputs of another model are refused or written anew as the run wants it") {
  const Setting setting;
  setting.open().append(Values{1, 2});
  using Earlier = KeptOutputs::Earlier;
  CHECK(support::refusal(Failure::usage, [&] { setting.open(Earlier::resume, "other"); }) ==
        (setting.directory / "kept").string() +
            ": --resume: expected outputs of this model, file and these lengths, got those of another prediction; "
            "hint: remove that file, or name another --output");
  CHECK(setting.open(Earlier::resume_known).values() == Values{1, 2});
  KeptOutputs other = setting.open(Earlier::resume_known, "other");
  CHECK(other.rows() == 0);
  other.append(Values{3, 4});
  CHECK(setting.open(Earlier::resume, "other").values() == Values{3, 4});
}

TEST_CASE("more rows than one record of a file may hold are resumed, too") {
  const Setting setting;
  Values many(io::kMostRecord / sizeof(float) + 2);
  many.front() = 1, many.back() = 2;
  setting.open().append(many);
  CHECK(setting.kept() == many);
}

TEST_CASE("rows behind a damaged part are not kept and neither is half a row") {
  const Setting setting;
  std::string identity;
  io::append_record(identity, "model");
  std::string damaged = record({3, 4});
  damaged[13] ^= 1;
  support::write_text(setting.directory / "kept", identity + record({1, 2}) + damaged + record({5, 6}));
  CHECK(setting.kept() == Values{1, 2});
  support::write_text(setting.directory / "kept", identity + record({1, 2}) + record({3}));
  CHECK(setting.kept() == Values{1, 2});
}
