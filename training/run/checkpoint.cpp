#include "training/run/checkpoint.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>

#include "distributed/processes.h"
#include "io/safetensors.h"
#include "io/say.h"
#include "nn/tensor_file.h"
#include "training/run/run_files.h"

namespace bertrand::training {

namespace {

constexpr const char* kOptimizerFile = "optimizer.safetensors";
constexpr std::size_t kSmallFiles = std::size_t{1} << 16;  // configuration and state, and what blocks are rounded to
constexpr std::size_t kTensorFacts = 512;                  // of the headers and the manifest

/// Under the names that PyTorch's AdamW gives them.
std::vector<nn::NamedTensor> with_names(const nn::Moments& moments) {
  std::vector<nn::NamedTensor> tensors;
  for (const auto& [name, tensor] : moments.first) tensors.push_back({"exp_avg." + name, tensor});
  for (const auto& [name, tensor] : moments.second) tensors.push_back({"exp_avg_sq." + name, tensor});
  return tensors;
}

/// Nothing that is not finite is ever saved: an earlier checkpoint is worth more.
void check_finite(const nn::ParameterSet& parameters, const std::filesystem::path& directory) {
  if (const std::string name = parameters.first_non_finite(parameters.masters()); !name.empty())
    fail(Failure::numerics,
         "{}: tensor \"{}\": expected finite weights, got some that are not; hint: a lower learning rate",
         (directory / kWeights).string(), name);
}

/// The file with the moments that belong to the model in `directory`.
std::filesystem::path find_moments(const std::filesystem::path& directory) {
  if (const std::filesystem::path own = directory / kOptimizerFile; std::filesystem::exists(own)) {
    if (!std::filesystem::exists(directory / kManifest)) return own;
    if (const std::string fault = verify_checkpoint(directory); !fault.empty())
      fail(Failure::model, "{}: --keep-moments: expected a whole checkpoint, but {}", directory.string(), fault);
    return own;
  }
  std::vector<std::string> skipped;
  const auto newest = CheckpointStore(directory).newest(skipped);
  for (const std::string& reason : skipped) io::warn("{}; skipped", reason);
  if (!newest)
    fail(Failure::model,
         "--keep-moments: expected {0}/{1} or {0}/checkpoint-N/{1}, got neither; hint: without --keep-moments the "
         "moments begin at 0",
         directory.string(), kOptimizerFile);
  // The weights of --init are those of the directory itself.
  if (std::filesystem::exists(directory / kWeights) &&
      InputFile::of(directory / kWeights).crc32c != InputFile::of(newest->directory / kWeights).crc32c)
    fail(Failure::model,
         "{}: --keep-moments: expected the weights of the newest checkpoint, got others; hint: --init {} takes weights "
         "and moments of one step",
         directory.string(), newest->directory.string());
  return newest->directory / kOptimizerFile;
}

/// `hint` ends the message of a tensor that the file does not have.
void load_file(const std::filesystem::path& path, const nn::Moments& moments, const char* hint = "") {
  const io::SafetensorsFile file(path);
  for (const auto& [name, tensor] : with_names(moments)) {
    const io::SafetensorsEntry* entry = file.find(name);
    if (!entry)
      fail(Failure::model, "{}: tensor \"{}\": expected one of shape {}, got none{}", path.string(), name,
           tensor.shape(), hint);
    if (!std::ranges::equal(entry->dims, tensor.shape().dims()))
      fail(Failure::model, "{}: tensor \"{}\": expected shape {}, got [{}]", path.string(), name, tensor.shape(),
           fmt::join(entry->dims, ", "));
    nn::load_entry(*entry, path, tensor);
  }
}

}  // namespace

nn::Moments moments_of(const Training& training) {
  nn::Moments moments;
  for (const auto& segment : training.parameters.segments()) {
    if (segment.rate == 0) continue;
    const auto part = [&](const Tensor& flat) { return flat.window(segment.begin, segment.shape); };
    moments.first.push_back({segment.name, part(training.optimizer.first_moments())});
    moments.second.push_back({segment.name, part(training.optimizer.second_moments())});
  }
  return moments;
}

std::size_t checkpoint_bytes(const Training& training) {
  return training.parameters.masters().bytes() + 2 * training.optimizer.first_moments().bytes() +
         training.objective.bytes_beside_weights() + training.parameters.segments().size() * kTensorFacts + kSmallFiles;
}

TensorChecksums write_checkpoint(io::Files& files, const std::filesystem::path& directory, const Training& training,
                                 const RunState& state, const Conditions& conditions) {
  check_finite(training.parameters, directory);
  TensorChecksums checksums;
  for (const auto& [name, crc] : training.objective.save(files, directory, training.parameters))
    checksums[fmt::format("{}/{}", kWeights, name)] = crc;
  io::FileWriter out(files, directory / kOptimizerFile);
  for (const auto& [name, crc] : nn::write_tensors(out, with_names(moments_of(training))))
    checksums[fmt::format("{}/{}", kOptimizerFile, name)] = crc;
  out.finish();
  io::write_file(files, directory / kStateFile, io::json_text(state.to_json(conditions), 2) + "\n");
  return checksums;
}

Restored read_state(const std::filesystem::path& file, const Conditions& conditions) {
  const io::Json json = io::read_json(file);
  const std::vector<std::string> changes =
      conditions.changes_since(parse_conditions(json, file.string()), file.parent_path().string());
  return {parse_run_state(json, file.string()), changes};
}

Restored restore_checkpoint(const std::filesystem::path& directory, const Training& training,
                            const Conditions& conditions) {
  const std::filesystem::path state_file = directory / kStateFile;
  Restored restored = read_state(state_file, conditions);
  const RunState& state = restored.state;
  if (state.steps_done != checkpoint_step(directory.filename().string()))
    fail(Failure::model, "{}: step: expected that of the directory's name, got {}", state_file.string(),
         state.steps_done);
  training.objective.load(directory, training.parameters);
  load_file(directory / kOptimizerFile, moments_of(training));
  return restored;
}

void check_resumable(const std::filesystem::path& output, const Conditions& conditions) {
  const auto checkpoints = CheckpointStore(output).list();
  const std::filesystem::path file =
      checkpoints.empty() ? output / kEndedFile : checkpoints.front().directory / kStateFile;
  try {
    read_state(file, conditions);
  } catch (const Error& error) {  // as of a file that is not there
    const bool tells = error.failure() == Failure::usage;
    // Another setting in a damaged checkpoint is the damage.
    if (tells && (checkpoints.empty() || verify_checkpoint(checkpoints.front().directory).empty())) throw;
  }
}

std::filesystem::path checkpoint_in_place_of(const std::vector<std::filesystem::path>& files,
                                             const std::filesystem::path& output) {
  const auto gone = std::ranges::find_if(
      files, [](const std::filesystem::path& file) { return !file.empty() && !std::filesystem::exists(file); });
  if (gone == files.end()) return {};
  std::vector<std::string> skipped;  // are named when the run goes on
  const auto newest = CheckpointStore(output).newest(skipped);
  if (!newest) return {};
  distributed::warn(
      fmt::format("{}: expected the file that the run began with, got none; shape and vocabulary are taken from {}",
                  gone->string(), newest->directory.string()));
  return newest->directory;
}

std::string load_moments(const std::filesystem::path& directory, const nn::Moments& moments) {
  const std::filesystem::path file = find_moments(directory);
  load_file(file, moments,
            "; hint: the run of --init did not train it: give its --freeze or --no-next-sentence here too, or leave "
            "out --keep-moments");
  return file.string();
}

void publish_model(io::Files& files, const std::filesystem::path& directory, const Objective& objective,
                   const nn::ParameterSet& parameters) {
  check_finite(parameters, directory);
  const std::filesystem::path staged = directory / fmt::format("model.tmp-{}", getpid());
  files.remove_all(staged);
  try {
    files.make_directory(staged);
    objective.save(files, staged, parameters);
  } catch (...) {  // as on a full disk, which it would keep full
    std::error_code ignored;
    std::filesystem::remove_all(staged, ignored);
    throw;
  }
  // Where a rename fails, what is left is whole, and may be the only copy.
  std::vector<std::filesystem::path> names;
  for (const auto& entry : std::filesystem::directory_iterator(staged)) names.push_back(entry.path().filename());
  for (const auto& name : names) files.rename(staged / name, directory / name);
  files.remove_all(staged);
  files.sync_directory(directory);
}

}  // namespace bertrand::training
