// Words with labels in the layouts of CoNLL, and of a sentence a line, as cells or JSON.
#include "bert/tasks/token_file.h"
#include "fuzz/fuzz.h"

using namespace bertrand;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::Directory directory;
  const std::string_view text = fuzz::text_of(data, size);
  if (fuzz::is_compressed(text)) return 0;
  const auto path = directory.write("f.conll", text);
  for (const auto layout : {tasks::TokenLayout::words, tasks::TokenLayout::rows, tasks::TokenLayout::objects})
    for (const bool needs_label : {false, true})
      fuzz::read_or_refuse([&] {
        tasks::walk_sentences(path, {.layout = layout}, needs_label, nullptr, [](const tasks::TokenFile& one) {
          fuzz::require(one.sentences() == 1 && !one.words.empty(), "a sentence");
          fuzz::require(one.labels.empty() || one.labels.size() == one.words.size(), "a label for each word");
          fuzz::require(one.lines.size() == one.words.size(), "a line for each word");
        });
      });
  return 0;
}
