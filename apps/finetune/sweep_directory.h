// The directory of a sweep: what it writes there beside its runs, and what goes of the sweep before.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "apps/finetune/options.h"
#include "training/run/run_directory.h"

namespace bertrand::finetune {

/// A row for each run, the means over seeds, and the page of all runs.
inline constexpr const char *kTable = "sweep.tsv", *kSeeds = "sweep_seeds.tsv", *kPage = "report.html";

/// Holds --output for a sweep whose runs have directories of these names there. The table and the page lie beside them,
/// and replace those of no other run, nor of a sweep that goes on: throws Error(Failure::usage).
std::unique_ptr<training::RunDirectory> claim_directory(const training::Settings& settings,
                                                        const std::vector<std::string>& runs);

/// --overwrite: removes the runs of the sweep before, of which the new one may have none, and what it wrote beside
/// them. A user's own files stay. Throws Error(Failure::usage), and removes nothing, if one of these runs is read or in
/// use.
void remove_earlier_runs(const Options& options, const training::RunDirectory& directory);

/// Throws Error(Failure::usage) if a run of its own would be written into the directory of a sweep.
void refuse_directory_of_sweep(const Options& options);

}  // namespace bertrand::finetune
