#include "bert/objectives/program_files.h"

#include "bert/tasks/evaluation_rows.h"

namespace bertrand::objectives {

training::ProgramFiles program_files() {
  return {.model = {"config.json", "vocab.txt", "tokenizer_config.json", "tokenizer.json", "added_tokens.json"},
          .evaluation = {"eval_report.tsv", "eval_illegal_tags.tsv", tasks::kEvaluationRows, "eval_predictions.json",
                         "eval_nbest_predictions.json", "eval_null_odds.json", "eval_msmarco_predictions.tsv"},
          .results = {"predictions.tsv", "predictions.json", "nbest_predictions.json", "null_odds.json",
                      "msmarco_predictions.tsv"},
          .pages = {"report.html", "explain.html"},
          .kept = {"predictions.partial"}};
}

}  // namespace bertrand::objectives
