// The flags that pretrain and finetune share, as typed values.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "io/choices.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "tensor/dtype.h"

namespace bertrand::training {

/// What a model computes in.
struct Precision {
  DType dtype = DType::f32;
  bool tf32 = false;  ///< f32, but products may round their operands to 11 bits where the device gains by it

  operator DType() const { return dtype; }  // NOLINT: wherever a type is asked for
  bool operator==(const Precision&) const = default;
};

/// What --optimizer, --schedule and --precision may be.
const io::Choices<optim::Method>& optimizers();
const io::Choices<optim::Schedule>& schedules();
const io::Choices<Precision>& precisions();

struct Settings {
  std::vector<std::string> command;  ///< argv, to be kept with the run

  std::filesystem::path output;
  bool resume = false, overwrite = false;
  bool plan_only = false;
  std::filesystem::path profile;  ///< Chrome trace, or empty

  std::string device = "cpu";
  int replicas = 1;
  int threads = 0;                  ///< 0: every core
  double collective_timeout = 300;  ///< seconds
  std::string cpu_kernels = "auto";
  Precision precision;
  bool measured_products =
      false;  ///< on cuda: the fastest algorithm for each product, which may differ from run to run

  std::int64_t batch_size = 32;
  std::int64_t micro_batch_size = 0;  ///< 0 until complete(): then at most batch_size
  std::int64_t steps = 0;             ///< 0: `epochs` says how long
  double epochs = 0;                  ///< 0: `steps` says how long
  optim::Options optimizer;           ///< epsilon < 0 until complete()
  optim::ScheduleOptions schedule;    ///< total_steps and warmup_steps are final in the Plan
  double warmup_ratio = -1;           ///< of all steps; below 0: schedule.warmup_steps counts
  std::int64_t max_seq_length = 128;
  std::uint64_t seed = 42;
  bool shuffle = true;

  std::int64_t log_every = 10;
  std::int64_t eval_every = 0;  ///< 0: at the end of every epoch
  std::int64_t save_every = 1000;
  std::int64_t keep = 3;

  std::string precision_name() const;  ///< as the flag has it

  /// The settings that decide the result, as (flag, value): a run may only be resumed with the same ones.
  std::vector<std::pair<std::string, std::string>> decisive() const;
};

/// What a program sets before its flags are read.
Settings pretraining_defaults();
Settings finetuning_defaults();

/// After parsing: fills in the defaults that depend on other flags and refuses what does not fit together.
/// Throws Error(Failure::usage).
void complete(Settings& settings);

}  // namespace bertrand::training
