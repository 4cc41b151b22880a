// Saving and resuming: checkpoints, the published model, and the first replica's state for all.
#include "training/run/save_and_resume.h"

#include <fmt/format.h>

#include "distributed/exchange.h"
#include "io/error.h"
#include "io/say.h"
#include "training/run/trained_model.h"

namespace bertrand::training {

SaveAndResume::SaveAndResume(const Parts& parts)
    : parts_(parts),
      store_(parts.settings.output, parts.files),
      published_(parts.settings.output, parts.training.objective, parts.training.parameters, parts.files) {}

std::optional<RunState> SaveAndResume::newest_state(std::int64_t total_steps) {
  const std::string output = parts_.settings.output.string();
  std::vector<std::string> skipped;
  const auto found = store_.newest(skipped);
  for (const std::string& reason : skipped) io::warn("{}; skipped", reason);
  if (!found && !skipped.empty())
    fail(Failure::model, "{}: checkpoints: expected one that verifies, got none of {}", output, skipped.size());
  if (!found) return ended_state(total_steps);
  auto [state, changes] = restore_checkpoint(found->directory, parts_.training, parts_.conditions);
  settle_best_model(state, found->directory, total_steps);
  say_resumed(found->directory, changes);
  checkpoint_ = found->step;
  return state;
}

/// If the best model in the run's directory is not the one that the state of `checkpoint` knows: puts that one there
/// again, or else lets the next evaluation decide anew.
void SaveAndResume::settle_best_model(RunState& state, const std::filesystem::path& checkpoint,
                                      std::int64_t total_steps) {
  const std::string fault = published_.fault(state.best);
  if (fault.empty()) return;
  const bool ended = state.steps_done >= total_steps;
  if (!published_.is_in_checkpoint(state.best)) {
    if (ended) return;  // nothing is evaluated any more: publish_result() refuses
    // A later model may have been published before the run was killed. On another device this run may not get there.
    io::warn("{}; the next evaluation decides anew", fault);
    state.best = {};
    state.evaluations_since_best = 0;
    return;
  }
  // What was written about an evaluation may be that of a later model, which the run no longer knows of.
  if (!ended || state.evaluation_due)
    for (const std::string_view name : parts_.evaluation) parts_.files.remove_all(parts_.settings.output / name);
  // Now, because that checkpoint may be removed before the run ends.
  published_.mend(state.best, "");
  const BestModel mended = state.best;  // its file may have another checksum than the one that was lost
  state = restore_checkpoint(checkpoint, parts_.training, parts_.conditions).state;
  state.best = mended;
}

std::optional<RunState> SaveAndResume::ended_state(std::int64_t total_steps) {
  const std::filesystem::path& output = parts_.settings.output;
  if (!std::filesystem::exists(output / kEndedFile)) return {};
  const auto [state, changes] = read_state(output / kEndedFile, parts_.conditions);
  if (!state.is_over(total_steps, parts_.settings.patience)) return {};
  if (!published_.fault(state.best).empty())
    fail(Failure::model,
         "{}: expected the model that the run ended with, got another or none; hint: without "
         "its directory the run begins anew",
         (output / kWeights).string());
  parts_.training.objective.load(output, parts_.training.parameters);
  say_resumed(output, changes);
  return state;
}

void SaveAndResume::say_resumed(const std::filesystem::path& from, const std::vector<std::string>& changes) {
  parts_.log.message(fmt::format("resumed from {}", from.string()));
  for (const std::string& change : changes) parts_.log.message("  " + change);
}

void SaveAndResume::begin_with_moments(const LoadMoments& load) {
  const std::string file = load(moments_of(parts_.training));
  parts_.log.message(fmt::format("moments from {}; steps, schedule and bias correction begin anew", file));
}

void SaveAndResume::share(RunState& state, bool has_moments) {
  const std::string text = distributed::broadcast(parts_.self, io::json_text(state.to_json(parts_.conditions)));
  if (!parts_.self.first()) state = parse_run_state(io::parse_json(text, {"the first replica"}), "the first replica");
  const bool moments = state.steps_done > 0 || has_moments;
  share_from_first(parts_.training, parts_.self, moments);
  if (!moments) return;  // all have the same, 0: for speed alone
  parts_.training.optimizer.resume(state.steps_done, state.loss_scale);
  saved_step_ = state.steps_done;
  checkpoint_ = distributed::broadcast_value(parts_.self, checkpoint_);
}

void SaveAndResume::check_space() const {
  training::check_space(parts_.settings.output, checkpoint_bytes(parts_.training));
}

void SaveAndResume::save(RunState& state, const std::function<void()>& saved) {
  const auto note_saved = [&] {
    saved_step_ = checkpoint_ = state.steps_done;
    saved();
  };
  if (parts_.self.first()) {
    write_checkpoint(state);
    note_saved();
  }
  parts_.self.collective().barrier();  // until then the other replicas name the checkpoint before
  note_saved();
  // After the second barrier no replica names the checkpoint before, so it may be removed. A replica that the end of
  // the first barrier never reached (a cable was cut) does not come to the second one.
  parts_.self.collective().barrier();
  if (parts_.self.first()) store_.remove_old(static_cast<int>(parts_.settings.keep));
}

/// Adds what others keep while the run goes on.
void SaveAndResume::take_stock(RunState& state) const {
  const optim::LossScale& scale = parts_.training.optimizer.loss_scale();
  if (scale.dynamic()) state.loss_scale = scale.read();
  state.unlogged = parts_.log.unlogged();
}

void SaveAndResume::write_checkpoint(RunState& state) {
  const Training& training = parts_.training;
  take_stock(state);
  store_.save(state.steps_done, checkpoint_bytes(training), [&](const std::filesystem::path& staged) {
    return training::write_checkpoint(parts_.files, staged, training, state, parts_.conditions);
  });
}

void SaveAndResume::publish_result(RunState& state) {
  if (state.best.score) published_.mend(state.best, last_checkpoint() + " holds the last one");
  else published_.publish(state.best);
  store_.remove_old(static_cast<int>(parts_.settings.keep));  // a run that was killed before that left one too many
}

void SaveAndResume::replace_checkpoints(RunState& state) {
  take_stock(state);
  io::replace_file(parts_.files, parts_.settings.output / kEndedFile,
                   io::json_text(state.to_json(parts_.conditions), 2) + "\n");
  store_.remove_all();
  forget_checkpoint();
}

std::string SaveAndResume::last_checkpoint() const {
  if (checkpoint_ == 0) return "none";
  return checkpoint_path(parts_.settings.output, checkpoint_).string();
}

}  // namespace bertrand::training
