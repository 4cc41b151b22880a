// The flags that pretrain and finetune share, as typed values.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "io/choices.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "tensor/dtype.h"
#include "training/run/flag_table.h"
#include "training/run/part_rates.h"

namespace bertrand::training {

/// What a model computes in.
struct Precision {
  DType dtype = DType::f32;
  bool tf32 = false;  ///< f32, but products may round their operands to 11 bits if the device gains by it

  operator DType() const { return dtype; }  // NOLINT: wherever a type is asked for
  bool operator==(const Precision&) const = default;
};

/// What --optimizer, --schedule and --precision may be.
const io::Choices<optim::Method>& optimizers();
const io::Choices<optim::Schedule>& schedules();
const io::Choices<Precision>& precisions();

struct Settings {
  std::vector<std::string> command;  ///< that begins this run, with what --resume took from the record

  std::filesystem::path output;
  bool resume = false, overwrite = false;
  bool plan_only = false, quiet = false;
  bool validate_only = false;              ///< reads settings and data, and says what is wrong with them
  bool dry_run = false;                    ///< makes the model and one step of the longest examples
  bool overfit_batch = false;              ///< trains on the first batch alone
  bool json_lines = false;                 ///< each line on stdout is a JSON object
  std::string memory;                      ///< "8GiB": the most that the run may take of a device; "": what there is
  std::optional<std::size_t> most_memory;  ///< the same in bytes; complete() fills it in
  bool save_model_only = false;            ///< at the end the checkpoints are removed
  std::filesystem::path profile;           ///< Chrome trace, or empty

  std::string device = "cpu";
  int replicas = 1;
  std::optional<int> threads;       ///< of this process; none: every core
  double collective_timeout = 300;  ///< seconds
  std::string cpu_kernels = "auto";
  Precision precision;
  bool measured_products =
      false;  ///< on cuda: the fastest algorithm for each product, which may differ from run to run

  std::int64_t batch_size = 32;
  std::optional<std::int64_t> micro_batch_size;  ///< complete() fills it in: at most batch_size
  int recompute_activations = 0;                 ///< of every so many layers; 0: none
  std::optional<std::int64_t> steps;             ///< none: `epochs` says how long
  std::optional<double> epochs;                  ///< none: `steps` says how long
  optim::Options optimizer;                      ///< complete() fills in epsilon
  PartRates::Options parts;                      ///< which are frozen, and how rates fall from the head down
  std::optional<double> adam_epsilon;            ///< none: as the method has it
  optim::ScheduleOptions schedule;               ///< total_steps and warmup_steps are final in the Plan
  std::optional<std::int64_t> warmup_steps;      ///< complete() copies it into the schedule
  std::optional<double> warmup_ratio;            ///< of all steps; none: schedule.warmup_steps counts
  std::optional<std::int64_t> max_seq_length;    ///< none: 128, or the model's positions if those are fewer
  std::uint64_t seed = 42;
  bool shuffle = true;

  std::int64_t log_every = 10;
  std::int64_t histograms = 0;             ///< steps between histograms for TensorBoard; 0: none
  std::optional<std::int64_t> eval_every;  ///< none: at the end of every epoch
  std::int64_t patience = 0;  ///< evaluations in a row without a better model after which the run ends; 0: never
  std::int64_t save_every = 1000;
  double save_every_minutes = 10;  ///< 0: saves follow from steps alone
  std::int64_t keep = 3;

  std::string precision_name() const;  ///< as the flag has it
  /// Whether the command trains no model and leaves nothing behind.
  bool is_rehearsal() const { return plan_only || validate_only || dry_run || overfit_batch; }
  /// Where files without a name go that hold what memory should not: --output. A rehearsal has them in the nearest
  /// directory above it that is there, so that it takes the memory of its run; "" if it may make no file there.
  std::filesystem::path spill_directory() const;

  /// The flags of this role, as (flag, value).
  FlagValues values(Role role) const;

  /// max_seq_length for a model of so many positions; if it is not given, `usual` or the positions if those are fewer.
  /// Throws Error(Failure::usage) if it is more than the positions.
  std::int64_t sequence_length(std::int64_t positions, std::int64_t usual = 128) const;
};

/// Declares the flags that every training program has, reading into `settings`, whose values are the defaults. The help
/// says that an example usually has `usual_length` tokens.
void add_flags(FlagTable& table, Settings& settings, const std::string& usual_length = "128");

/// What a program sets before its flags are read.
Settings pretraining_defaults();
Settings finetuning_defaults();

/// After parsing: fills in the defaults that depend on other flags and refuses what does not fit together.
/// Throws Error(Failure::usage).
void complete(Settings& settings);

}  // namespace bertrand::training
