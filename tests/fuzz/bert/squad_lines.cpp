// SQuAD's questions as lines of JSON.
#include "bert/tasks/squad_file.h"
#include "fuzz/fuzz.h"

using namespace bertrand;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::Directory directory;
  const std::string_view text = fuzz::text_of(data, size);
  if (fuzz::is_compressed(text)) return 0;
  const auto path = directory.write("q.jsonl", text);
  fuzz::read_or_refuse([&] {
    std::size_t bytes = 0;
    tasks::walk_squad(path, [&](tasks::SquadParagraph&& paragraph) {
      fuzz::require(!paragraph.questions.empty(), "a question");
      bytes += tasks::text_bytes(paragraph);
    });
    fuzz::require(bytes <= 3 * size, "no more than the text has");
  });
  return 0;
}
