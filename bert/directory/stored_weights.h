// The tensors of a model's files by the names that they have here, whatever form the files have.
#pragma once
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "io/safetensors.h"
#include "io/tensor_bundle.h"
#include "nn/tensor_file.h"

namespace bertrand::bert {

constexpr const char* kWordEmbeddings = "bert.embeddings.word_embeddings.weight";
/// The second name that a file may give to a parameter, and the first.
inline constexpr std::pair<const char*, const char*> kAliases[] = {
    {"cls.predictions.decoder.weight", kWordEmbeddings}, {"cls.predictions.decoder.bias", "cls.predictions.bias"}};
/// Whether a name is the second one that a file may give to a parameter, alone or beside the first.
bool is_alias(const std::string& name);

class StoredWeights {
 public:
  /// Opens the files of a model. Throws Error(Failure::model): none, damaged ones, two tensors of one meaning.
  explicit StoredWeights(const std::filesystem::path& model);

  const nn::StoredNumbers* find(const std::string& name) const;
  /// What stands for no parameter is under the name that it has in the file.
  const std::map<std::string, nn::StoredNumbers>& by_name() const { return by_name_; }
  /// Compares the checksums of these tensors, if the files have any. Throws Error(Failure::model).
  void verify(const std::vector<std::string>& names) const;
  const std::filesystem::path& path() const { return path_; }  ///< what messages name

 private:
  void open_safetensors(const std::filesystem::path& file);
  void open_checkpoint(const std::filesystem::path& prefix);
  void insert(const std::string& name, nn::StoredNumbers numbers);

  std::filesystem::path path_;
  std::vector<std::unique_ptr<io::SafetensorsFile>> files_;
  std::unique_ptr<io::BundleFile> checkpoint_;
  std::map<std::string, const io::BundleEntry*> checked_;  // entries that have a checksum, by the name here
  std::map<std::string, nn::StoredNumbers> by_name_;
};

}  // namespace bertrand::bert
