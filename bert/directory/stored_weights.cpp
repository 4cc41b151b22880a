// Names in safetensors files and in checkpoints of TensorFlow brought to those of this library.
#include "bert/directory/stored_weights.h"

#include <algorithm>

#include "bert/directory/google_names.h"
#include "bert/directory/located.h"
#include "io/error.h"
#include "io/say.h"
#include "tensor/backends.h"

namespace bertrand::bert {
namespace {

namespace fs = std::filesystem;

/// The name that a parameter has here, for a name found in a safetensors file: old TensorFlow names of LayerNorm,
/// NVIDIA's of dense layers, and the encoder alone, which has no "bert." before it.
std::string canonical(std::string name) {
  const auto replace = [&](std::string_view from, std::string_view to) {
    if (const auto at = name.rfind(from); at != std::string::npos) name.replace(at, from.size(), to);
  };
  replace("LayerNorm.gamma", "LayerNorm.weight");
  replace("LayerNorm.beta", "LayerNorm.bias");
  replace(".dense_act.", ".dense.");
  for (const char* part : {"embeddings.", "encoder.", "pooler."})
    if (name.starts_with(part)) return "bert." + name;
  return name;
}

}  // namespace

bool is_alias(const std::string& name) {
  return std::ranges::any_of(kAliases, [&](const auto& alias) { return name == alias.first; });
}

StoredWeights::StoredWeights(const fs::path& model) {
  const WeightFiles files = weight_files(model);
  path_ = files.named;
  for (const auto& [file, tensors] : files.safetensors) {
    open_safetensors(file);
    for (const std::string& tensor : tensors)  // a conversion may have left an alias in the index alone
      if (!files_.back()->find(tensor) && !is_alias(tensor))
        fail(Failure::model, "{}: weight_map: expected {} to have \"{}\", got no such tensor", path_.string(),
             file.filename().string(), io::one_line(tensor));
  }
  if (!files.checkpoint.empty()) open_checkpoint(files.checkpoint);
  for (const auto& [alias, name] : kAliases)
    if (const auto* found = find(alias); found && !find(name)) {
      by_name_.emplace(name, *found);
      if (checked_.contains(alias)) checked_.emplace(name, checked_.at(alias));
    }
}

void StoredWeights::open_safetensors(const fs::path& file) {
  files_.push_back(std::make_unique<io::SafetensorsFile>(file));
  for (const io::SafetensorsEntry& entry : files_.back()->entries())
    insert(canonical(entry.name), nn::numbers_of(entry, file));
}

void StoredWeights::open_checkpoint(const fs::path& prefix) {
  checkpoint_ = std::make_unique<io::BundleFile>(prefix);
  for (const io::BundleEntry& entry : checkpoint_->entries()) {
    if (is_bookkeeping(entry.name)) continue;
    const GoogleName ours = our_name(entry.name).value_or(GoogleName{entry.name});
    nn::StoredNumbers numbers{.name = entry.name,
                              .place = checkpoint_->place(entry),
                              .dtype_name = std::string(entry.type_name()),
                              .dims = joined_heads(ours.name, entry.dims),
                              .bytes = [this, &entry] { return checkpoint_->bytes(entry); }};
    if (ours.transposed && numbers.dims.size() == 2) {
      std::swap(numbers.dims[0], numbers.dims[1]);
      numbers.transposed = true;
    }
    insert(ours.name, std::move(numbers));
    if (entry.type_name() != "STRING") checked_.emplace(ours.name, &entry);
  }
}

void StoredWeights::insert(const std::string& name, nn::StoredNumbers numbers) {
  const auto it = by_name_.find(name);
  if (it != by_name_.end())
    fail(Failure::model, "{}: expected one of this meaning, got also \"{}\"", numbers.place, it->second.name);
  by_name_.emplace(name, std::move(numbers));
}

const nn::StoredNumbers* StoredWeights::find(const std::string& name) const {
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : &it->second;
}

void StoredWeights::verify(const std::vector<std::string>& names) const {
  std::vector<const io::BundleEntry*> entries;
  for (const std::string& name : names)
    if (const auto found = checked_.find(name); found != checked_.end()) entries.push_back(found->second);
  if (!entries.empty()) checkpoint_->verify(entries, available_cores());
}

}  // namespace bertrand::bert
