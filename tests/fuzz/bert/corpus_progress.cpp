// How far an interrupted job of prepare corpus is: progress.json of a job that was stopped, and the bytes of its three
// files of a shard. A byte for each of their sizes, those files, and a JSON object whose keys replace those of the
// record.
#include "bert/data/corpus_writer.h"
#include "fuzz/fuzz.h"
#include "fuzz/io/tables.h"

using namespace bertrand;

namespace {

const text::Tokenizer& tokenizer() {
  static const text::Tokenizer made(text::Vocabulary::parse("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n##a\n", "v"));
  return made;
}

/// A job of two inputs that was stopped after the first.
struct Stopped {
  fuzz::Directory directory;
  data::CorpusJob job{
      .inputs = {directory.write("1.txt", "a b\nb a\n\nb b\n"), directory.write("2.txt", "ba a\n\na\n")},
      .output = directory.path() / "corpus",
      .shards = 2};
  io::Json progress;

  Stopped() {
    data::CorpusJob first = job;
    first.stop = [] { return true; };
    first.progress = [](std::uint64_t) { fail(Failure::interrupted, "stopped"); };
    fuzz::read_or_refuse([&] { data::write_corpus(first, tokenizer()); });
    progress = io::read_json(directory.path() / "corpus.partial/progress.json");
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Stopped stopped;
  const auto partial = stopped.directory.path() / "corpus.partial";
  std::filesystem::remove_all(partial);
  std::filesystem::remove_all(stopped.job.output);
  std::filesystem::create_directory(partial);
  std::string_view text = fuzz::text_of(data, size);
  const std::size_t sizes[] = {fuzz::take_byte(text), fuzz::take_byte(text), fuzz::take_byte(text)};
  const char* const names[] = {"ids", "sentences", "documents"};
  for (int i = 0; i < 3; ++i)
    stopped.directory.write(fmt::format("corpus.partial/shard-00000.{}", names[i]), fuzz::take(text, sizes[i]));
  fuzz::read_or_refuse([&] {
    io::Json progress = stopped.progress;
    const io::Json changes = io::parse_json(text, {.name = "changes"});
    if (changes.is_object()) progress.update(changes);
    stopped.directory.write("corpus.partial/progress.json", io::json_text(progress));
    const data::CorpusManifest manifest = data::write_corpus(stopped.job, tokenizer()).manifest;
    fuzz::require(std::ssize(manifest.shards) <= 2, "two shards at most");
  });
  return 0;
}
