// What every objective of a BERT has in common: it saves itself as a Hugging Face directory.
#pragma once
#include "bert/directory/model_directory.h"
#include "bert/network/parts.h"
#include "training/step/objective.h"

namespace bertrand::objectives {

class BertObjective : public training::Objective {
 public:
  std::vector<nn::Part> parts() override { return bert::parts_of(model()); }
  std::map<std::string, std::uint32_t> save(io::Files& files, const std::filesystem::path& path,
                                            const nn::ParameterSet& parameters) const override {
    return bert::write_directory(files, path, directory(), parameters);
  }
  void load(const std::filesystem::path& path, nn::ParameterSet& parameters) const override {
    bert::load_whole(path, parameters);
  }
  std::size_t bytes_beside_weights() const override { return bert::vocabulary_bytes(directory()); }

 private:
  /// What its directory holds beside the weights.
  virtual bert::DirectoryFiles directory() const = 0;
};

}  // namespace bertrand::objectives
