#include "apps/finetune/make_task.h"

#include "bert/objectives/classification_task.h"

namespace bertrand::finetune {

std::unique_ptr<objectives::FineTuningTask> make_task(const Options& options, const bert::Config& config,
                                                      const text::Tokenizer& tokenizer) {
  tasks::TaskData data =
      tasks::read_task_data(options.make_task(), {options.train, options.evaluation, options.prediction},
                            {.directory = options.model, .problem_type = config.problem_type, .labels = config.labels},
                            tokenizer, static_cast<int>(*options.settings.max_seq_length));
  return std::make_unique<objectives::ClassificationTask>(std::move(data), config, tokenizer);
}

}  // namespace bertrand::finetune
