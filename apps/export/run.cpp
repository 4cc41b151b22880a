// From flags to a directory in its place.
#include "apps/export/run.h"

#include <CLI/CLI.hpp>
#include <span>

#include "apps/cli/flags.h"
#include "apps/export/place.h"
#include "io/error.h"
#include "io/say.h"
#include "io/signals.h"
#include "io/staged_directory.h"

namespace bertrand::exporting {

void add_flags(CLI::App& app, Options& options) {
  app.add_option("--model", options.source.model, "model directory or TensorFlow checkpoint")
      ->type_name("PATH")
      ->required();
  cli::choice_flag(app, "--format", options.format, formats(), "what to write")->required();
  app.add_option(
         "--output", options.output,
         "directory to write, which must not exist; of saved-model the one with the versions, to which 1 or the next "
         "number is added")
      ->type_name("DIR")
      ->required();
  app.add_option("--vocab-file", options.source.tokenizer.vocab_file, "vocab.txt, for a model directory without one")
      ->type_name("FILE");
  app.add_flag("--cased", options.source.tokenizer.cased, "with --vocab-file: keep case and accents");
  app.add_flag("--external-data", options.external_data,
               "of onnx: weights in a file of their own, as always beyond 1.8 GB");
  app.add_flag("--strict", options.source.strict, "refuse weights of which any is missing, unused or mis-shaped");
}

namespace {

Writer writer_of(const Options& options) {
  if (!options.external_data) return options.format.write;
  if (!options.format.write_external_data)
    fail(Failure::usage, "--external-data: expected with --format onnx, got --format {}",
         io::name_in(formats(), options.format));
  return options.format.write_external_data;
}

/// Every format writes its weights in small pieces, so it stops soon if it is asked before each. It is asked once more
/// before the output gets its name.
class InterruptibleFiles : public io::Files {
 public:
  void write(int descriptor, std::span<const std::byte> bytes, const std::filesystem::path& file) override {
    io::leave_if_requested("exporting");
    Files::write(descriptor, bytes, file);
  }
  void rename(const std::filesystem::path& from, const std::filesystem::path& to) override {
    io::leave_if_requested("exporting");
    Files::rename(from, to);
  }
};

}  // namespace

void run(const Options& options) {
  io::catch_stop_signals(io::OnStop::leave);
  InterruptibleFiles files;
  run(options, files);
}

void run(const Options& options, io::Files& files) {
  const Writer write = writer_of(options);
  const Place place = options.format.has_versions ? next_version(options.output) : Place{options.output};
  io::StagedDirectory output(files, place.directory, "output");
  const Model model = read_model(options.source);
  const std::filesystem::path directory = place.files_in(output.path());
  files.make_directory(directory);
  write(files, directory, model);
  files.sync_directory(directory);
  output.publish();
  io::tell("{}: {} as {}", place.files_in(place.directory).string(), model.config.architectures[0],
           io::name_in(formats(), options.format));
}

}  // namespace bertrand::exporting
