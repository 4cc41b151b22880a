#include "apps/finetune/make_task.h"

#include "bert/objectives/classification_task.h"
#include "bert/objectives/ranking_task.h"

namespace bertrand::finetune {

std::unique_ptr<objectives::FineTuningTask> make_task(const Options& options, const bert::Config& config,
                                                      const text::Tokenizer& tokenizer) {
  if (options.ranks())
    return std::make_unique<objectives::RankingTask>(
        objectives::RankingTask::Inputs{.train = options.train,
                                        .evaluation = options.evaluation,
                                        .prediction = options.prediction,
                                        .qrels = options.qrels,
                                        .lengths = {.sequence = static_cast<int>(*options.settings.max_seq_length),
                                                    .query = options.max_query_length}},
        config, tokenizer);
  tasks::TaskData data =
      tasks::read_task_data(options.make_task(), {options.train, options.evaluation, options.prediction},
                            {.directory = options.model, .problem_type = config.problem_type, .labels = config.labels},
                            tokenizer, static_cast<int>(*options.settings.max_seq_length));
  return std::make_unique<objectives::ClassificationTask>(std::move(data), config, tokenizer);
}

}  // namespace bertrand::finetune
