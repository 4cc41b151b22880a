// Passages ranked by how likely they are to answer a query, with the score log p(relevant). The model has two classes,
// relevant or not (Nogueira and Cho 2019); or one output, the logit of "relevant", as cross-encoders have (Reimers and
// Gurevych 2019, sentence-transformers) and as it is learnt by binary cross-entropy.
#pragma once
#include "bert/objectives/finetuning_task.h"
#include "bert/tasks/ranking_data.h"
#include "bert/tasks/ranking_scores.h"

namespace bertrand::objectives {

class RankingTask : public FineTuningTask {
 public:
  struct Inputs {
    std::filesystem::path train, evaluation, prediction;  ///< each may be empty; triples, candidates, candidates
    std::filesystem::path qrels;                          ///< of the queries that are evaluated
    tasks::RankingLengths lengths = {};
    io::SpillPlace spill = {};
    bool keep_bad_rows = false;         ///< in bad_rows(), and go on
    std::filesystem::path config_file;  ///< the start model's, for messages
  };
  /// Reads all files once; candidates are read again part by part. `config` is the start model's: if that has one
  /// label, and is not for numbers, the ranker has one output, else two. The tokenizer must outlive the task. Throws
  /// Failure::input for bad lines, Failure::model if the model knows one segment only.
  RankingTask(const Inputs& inputs, bert::Config config, const text::Tokenizer& tokenizer);

  std::unique_ptr<bert::TaskModel> make_model() const override;
  const tasks::EncodedDataset* examples(File file) const override;
  std::optional<StreamedFile> streamed(File file) const override;
  std::size_t other_bytes() const override;
  Variable loss(const Variable& outputs, const bert::PackedBatch& batch, std::span<const std::int64_t> numbers,
                double divisor) const override;
  /// eval_loss, eval_mrr_at_10, eval_mrr, eval_map, eval_ndcg, eval_rprec; the loss is the mean over the candidates.
  training::Metrics evaluate(const tasks::Logits& outputs) const override;
  std::vector<tasks::Figure> figures() const override { return tasks::ranking_figures(); }
  /// eval_msmarco_predictions.tsv: query id, passage id, rank from 1.
  void write_evaluation(io::Files& files, const std::filesystem::path& directory,
                        const tasks::Logits& outputs) const override;
  /// predictions.tsv: query id, passage id, score, in the order of the file; msmarco_predictions.tsv as above.
  std::string write_predictions(io::Files& files, const std::filesystem::path& directory,
                                const tasks::Logits& outputs) const override;
  std::string warnings() const override;
  std::string remarks() const override { return ""; }
  std::vector<std::string> bad_rows() const override { return bad_rows_; }

 private:
  const std::optional<tasks::CandidateList>& candidates(File file) const {
    return file == File::evaluation ? evaluation_ : prediction_;
  }
  const Inputs inputs_;
  std::vector<std::string> bad_rows_;
  std::optional<tasks::Triples> train_;
  std::optional<tasks::CandidateList> evaluation_, prediction_;
  tasks::Qrels qrels_;
};

}  // namespace bertrand::objectives
