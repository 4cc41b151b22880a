// --format saved-model: the variables, which are a checkpoint, the graph, and the files that a client needs.
#include "apps/export/formats.h"
#include "bert/export/saved_model_bert.h"
#include "io/tensor_bundle.h"

namespace bertrand::exporting {

void write_saved_model(io::Files& files, const std::filesystem::path& directory, const Model& model) {
  std::vector<io::TensorSource> variables = bert::google_tensors(*model.parameters, directory);
  std::map<std::string, tf::Dims> weights;
  for (const io::TensorSource& variable : variables) weights[variable.name] = variable.dims;
  for (const char* name : {"variables", "assets.extra"}) files.make_directory(directory / name);
  io::write_bundle(files, directory / "variables" / "variables", std::move(variables));
  bert::write_configuration(files, directory / "assets.extra", model.files());  // no loader looks there
  model.copy_sentence_files(files, directory / "assets.extra");
  for (const char* name : {"variables", "assets.extra"}) files.sync_directory(directory / name);
  io::write_file(files, directory / "saved_model.pb",
                 saved_model_of({.config = model.config,
                                 .architecture = model.architecture,
                                 .pooler_layer = model.pooler_layer,
                                 .source = model.source,
                                 .weights = std::move(weights)}));
}

}  // namespace bertrand::exporting
