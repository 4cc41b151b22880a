// Questions as lines of JSON, as Hugging Face's data sets `squad` and `squad_v2` have them.
#pragma once
#include <filesystem>
#include <functional>

#include "bert/tasks/squad_file.h"
#include "bert/tasks/squad_ids.h"

namespace bertrand::tasks {

/// Reads {"id", "context", "question", "answers": {"text": […], "answer_start": […]}} a line; the file may be
/// compressed. "answers" may also be a list of {"text", "answer_start"} as in SQuAD's JSON, or missing. Without an
/// "is_impossible" a question whose answers are none is impossible. Other keys are passed over. Lines that follow each
/// other with the same context are one paragraph. Throws as walk_squad() does, naming file, line and key.
void walk_squad_lines(const std::filesystem::path& file, const std::function<void(SquadParagraph&& paragraph)>& use,
                      SquadIds& ids);

}  // namespace bertrand::tasks
