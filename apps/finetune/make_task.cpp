#include "apps/finetune/make_task.h"

#include "bert/objectives/classification_task.h"
#include "bert/objectives/ranking_task.h"
#include "bert/objectives/token_task.h"

namespace bertrand::finetune {

std::unique_ptr<objectives::FineTuningTask> make_task(const Options& options, const bert::Config& config,
                                                      const text::Tokenizer& tokenizer) {
  const int max_length = static_cast<int>(*options.settings.max_seq_length);
  if (options.ranks())
    return std::make_unique<objectives::RankingTask>(
        objectives::RankingTask::Inputs{.train = options.train,
                                        .evaluation = options.evaluation,
                                        .prediction = options.prediction,
                                        .qrels = options.qrels,
                                        .lengths = {.sequence = max_length, .query = options.max_query_length}},
        config, tokenizer);
  const tasks::TaskFiles files{options.train, options.evaluation, options.prediction};
  const tasks::ModelOutputs model{
      .directory = options.model, .problem_type = config.problem_type, .labels = config.labels};
  if (auto words = options.token_options()) {
    words->windows.max_length = max_length;
    return std::make_unique<objectives::TokenTask>(tasks::read_token_data(*words, files, model, tokenizer), config,
                                                   tokenizer);
  }
  return std::make_unique<objectives::ClassificationTask>(
      tasks::read_task_data(options.make_task(), files, model, tokenizer, max_length), config, tokenizer);
}

}  // namespace bertrand::finetune
