// Each recipe with the place that it is taken from. All of them decay by 0.01, but no bias and no LayerNorm.
#include "apps/pretrain/recipes.h"

namespace bertrand::pretrain {
namespace {

using training::FlagValues;
using training::Recipe;

/// What a phase has of its own, in the words of the flags.
struct Phase {
  std::string optimizer, learning_rate, schedule;
  std::string warmup_flag, warmup;
  std::string batch_size, steps;
  bool is_long = false;        ///< 512 tokens with 80 predictions, else 128 with 20
  bool keeps_moments = false;  ///< of the phase before it
};

FlagValues settings(const Phase& phase) {
  return {{"--optimizer", phase.optimizer},
          {"--learning-rate", phase.learning_rate},
          {"--schedule", phase.schedule},
          {phase.warmup_flag, phase.warmup},
          {"--weight-decay", "0.01"},
          {"--adam-beta1", "0.9"},
          {"--adam-beta2", "0.999"},
          {"--adam-epsilon", "1e-06"},
          {"--clip-norm", "1"},
          {"--batch-size", phase.batch_size},
          {"--steps", phase.steps},
          {"--max-seq-length", phase.is_long ? "512" : "128"},
          {"--max-predictions-per-seq", phase.is_long ? "80" : "20"}};
}

/// Text is masked as by create_pretraining_data.py of google-research/bert, of which the others have copies, and every
/// parameter is trained, at one rate.
Recipe recipe(const std::string& name, const std::string& source, const Phase& phase) {
  return {name,
          source,
          settings(phase),
          {{"--keep-moments", phase.keeps_moments ? "true" : "false"},
           {"--no-next-sentence", "false"},
           {"--masked-lm-prob", "0.15"},
           {"--short-seq-prob", "0.1"},
           {"--whole-word-mask", "false"},
           {"--freeze", ""},
           {"--layer-decay", "1"}}};
}

/// Devlin et al. 2018, A.2: batches of 256, 1,000,000 steps, 90 % of them with 128 tokens; rate 1e-4, warm-up of
/// 10,000 steps, linear decay. Betas, epsilon and clipping: google-research/bert, optimization.py. Predictions of an
/// example: its README, about 15 % of the tokens.
std::vector<Recipe> google() {
  Phase phase{.optimizer = "adamw-google",
              .learning_rate = "0.0001",
              .schedule = "google",
              .warmup_flag = "--warmup-steps",
              .warmup = "10000",
              .batch_size = "256",
              .steps = "900000"};
  const std::string source = "Devlin et al. 2018, appendix A.2, and google-research/bert: ";
  Recipe first = recipe(
      "google-128", source + "the first 90 % of the steps. Here each phase has a warm-up and decay of its own.", phase);
  phase.steps = "100000";
  phase.is_long = true;
  return {std::move(first),
          recipe("google-512", source + "the last 10 % of the steps; --init the first phase.", phase)};
}

/// NVIDIA/DeepLearningExamples, PyTorch/LanguageModeling/BERT, run_pretraining.sh (8 GPUs with 8,192 and 4,096
/// examples a step), run_pretraining.py (weight decay), schedulers.py (polynomial of power 0.5), apex's FusedLAMB
/// (betas, epsilon, largest norm 1, trust ratio for weights that decay).
std::vector<Recipe> nvidia() {
  Phase phase{.optimizer = "lamb-decayed",
              .learning_rate = "0.006",
              .schedule = "polynomial",
              .warmup_flag = "--warmup-ratio",
              .warmup = "0.2843",
              .batch_size = "65536",
              .steps = "7038"};
  const std::string source = "NVIDIA/DeepLearningExamples, PyTorch/LanguageModeling/BERT/scripts/run_pretraining.sh: ";
  Recipe first = recipe("nvidia-phase1", source + "phase 1.", phase);
  phase.learning_rate = "0.004";
  phase.warmup = "0.128";
  phase.batch_size = "32768";
  phase.steps = "1563";
  phase.is_long = true;
  phase.keeps_moments = true;
  return {std::move(first),
          recipe("nvidia-phase2", source + "phase 2; --init the first phase, with --keep-moments as the script does.",
                 phase)};
}

/// HabanaAI/Model-References, TensorFlow/nlp/bert: bert_pretraining_bookswiki_common.sh (65,536 and 32,768
/// examples a step; 8 workers with rates of 7.5e-4 and 5e-4, which run_pretraining.py multiplies by 8),
/// run_pretraining_lamb_phase1.sh and _phase2.sh (steps, 782 · 2 in phase 2, and warm-up), optimization.py
/// (LAMB with the trust ratio on every variable, decay of power 0.5).
std::vector<Recipe> habana() {
  Phase phase{.optimizer = "lamb",
              .learning_rate = "0.006",
              .schedule = "polynomial",
              .warmup_flag = "--warmup-steps",
              .warmup = "2000",
              .batch_size = "65536",
              .steps = "7038"};
  const std::string source = "HabanaAI/Model-References, TensorFlow/nlp/bert/scripts/run_pretraining_lamb.sh: ",
                    note = " It clips each micro-batch, and its rates come one step later; here the sum is clipped.";
  Recipe first = recipe("habana-phase1", source + "phase 1." + note, phase);
  phase.learning_rate = "0.004";
  phase.warmup = "200";
  phase.batch_size = "32768";
  phase.steps = "1564";
  phase.is_long = true;
  return {std::move(first),
          recipe("habana-phase2", source + "phase 2; --init the first phase, without its moments." + note, phase)};
}

}  // namespace

const std::vector<Recipe>& recipes() {
  static const std::vector<Recipe> all = [] {
    std::vector<Recipe> list;
    for (const auto& phases : {google(), nvidia(), habana()}) list.insert(list.end(), phases.begin(), phases.end());
    return list;
  }();
  return all;
}

}  // namespace bertrand::pretrain
