// --sweep: the same fine-tuning with several values of some flags, one run after the other, and one table of results.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "apps/finetune/options.h"

namespace bertrand::finetune {

/// A value for each flag that is swept, as (flag, value): one run.
using Trial = std::vector<std::pair<std::string, std::string>>;

/// All combinations of what --sweep lists, the last flag changing fastest: "learning-rate=2e-5,3e-5" and "seed=1,2" are
/// four. Throws Error(Failure::usage) for a flag that is not in the table, does not decide the result or comes twice,
/// and for a list without values.
std::vector<Trial> trials_of(const std::vector<std::string>& sweep, const training::FlagTable& table);

/// The directory of a run under --output: "learning-rate=2e-5,seed=1".
std::string name_of(const Trial& trial);

/// The command of one trial's run, so that it can be resumed by itself: the sweep's command without --sweep, the swept
/// flags and --output, and then the trial's.
std::vector<std::string> command_of(const std::vector<std::string>& command, const Trial& trial,
                                    const std::string& output);

/// Holds --output as a run does, tries the settings and data of all of them, as --plan does, then runs them, writes
/// sweep.tsv into --output after each, then sweep_seeds.tsv and report.html of all, and names the best. All are
/// evaluated on the same rows. A run whose numbers become infinite counts as failed, any other failure ends the sweep.
void sweep(Options options);

}  // namespace bertrand::finetune
