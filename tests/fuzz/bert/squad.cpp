// SQuAD's JSON.
#include "bert/tasks/squad_file.h"
#include "fuzz/fuzz.h"

using namespace bertrand;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::read_or_refuse([&] {
    std::size_t bytes = 0;
    for (const tasks::SquadParagraph& paragraph : tasks::parse_squad(fuzz::text_of(data, size), "s")) {
      bytes += paragraph.context.size();
      for (const tasks::SquadQuestion& question : paragraph.questions) bytes += question.id.size();
    }
    fuzz::require(bytes <= 3 * size, "no more than the text has");
  });
  return 0;
}
