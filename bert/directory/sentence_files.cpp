// What sentence-transformers keeps beside an encoder.
#include "bert/directory/sentence_files.h"

#include "bert/directory/located.h"
#include "bert/directory/model_directory.h"
#include "io/error.h"
#include "io/json.h"

namespace bertrand::bert {
namespace {

namespace fs = std::filesystem;

void copy_file(io::Files& files, const fs::path& from, const fs::path& to) {
  const io::MappedFile bytes(from);
  io::FileWriter out(files, to);
  out.write(bytes.bytes());
  out.finish();
}

}  // namespace

fs::path path_of_module(io::JsonReader& module) {
  const std::string path = module.text("path", "");
  const fs::path own = path.ends_with('/') ? path.substr(0, path.size() - 1) : path;
  if (own.empty() != path.empty() || own != own.filename() || own == "." || own == "..")
    module.refuse("path", "a directory beside it", module.find("path"));
  return own;
}

void copy_sentence_files(io::Files& files, const fs::path& model, const fs::path& directory) {
  const fs::path from = directory_of(model), modules = from / "modules.json";
  if (!fs::exists(modules)) return;
  for (const char* name : {"modules.json", "sentence_bert_config.json", "config_sentence_transformers.json"})
    if (fs::exists(from / name)) copy_file(files, from / name, directory / name);
  const io::Json list = io::read_json(modules);
  for (const io::Json& each : list) {
    io::JsonReader module(each, {modules.string()}, "[].");
    const fs::path own = path_of_module(module);
    if (own.empty() || !fs::is_directory(from / own)) continue;  // the encoder, or a module without a file
    files.make_directory(directory / own);
    for (const auto& entry : fs::directory_iterator(from / own))
      if (entry.is_regular_file()) copy_file(files, entry.path(), directory / own / entry.path().filename());
    files.sync_directory(directory / own);
  }
}

}  // namespace bertrand::bert
