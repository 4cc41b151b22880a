// prepare corpus: text to a tokenised corpus.
#include "apps/prepare/corpus.h"

#include "bert/data/corpus_view.h"
#include "bert/data/corpus_writer.h"
#include "io/byte_progress.h"
#include "io/error.h"
#include "io/file_arguments.h"
#include "io/say.h"
#include "io/signals.h"
#include "io/units.h"

namespace bertrand::prepare {

void write_corpus(const CorpusOptions& options) {
  io::catch_stop_signals(io::OnStop::leave);
  const double input_bytes = io::check_files(options.inputs, {});
  io::check_readable_twice(options.inputs);
  const text::Tokenizer tokenizer = load_tokenizer(options.tokenizer);
  io::ByteProgress progress("tokenising", input_bytes);
  const data::CorpusResult result = data::write_corpus(
      {.inputs = options.inputs,
       .output = options.output,
       .threads = options.threads,
       .shards = options.shards,
       .progress =
           [&](std::uint64_t bytes) {
             if (io::leave_requested())
               fail(Failure::interrupted, "interrupted after {} of text; hint: the same command goes on from there",
                    io::bytes_text(static_cast<double>(bytes)));
             progress.update(static_cast<double>(bytes));
           },
       .stop = io::leave_requested},
      tokenizer);
  progress.finish();
  for (const std::string& warning : result.warnings) io::warn("{}", warning);
  if (result.begun_bytes > 0)
    io::tell("went on after {} of text, which an earlier command had done",
             io::bytes_text(static_cast<double>(result.begun_bytes)));
  const data::CorpusShard total = result.manifest.total();
  if (const std::string doubt = data::doubt_about_sentences(total.documents.count, total.sentences.count);
      !doubt.empty())
    io::warn("{}: {}", options.inputs.front().string(), doubt);
  io::tell("wrote {}, {}, {} in {}", io::counted(total.documents.count, "document"),
           io::counted(total.sentences.count, "sentence"), io::counted(total.ids.count, "token"),
           io::counted(result.manifest.shards.size(), "shard"));
}

}  // namespace bertrand::prepare
