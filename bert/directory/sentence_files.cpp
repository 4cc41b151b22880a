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

std::vector<fs::path> module_directories(const fs::path& directory) {
  const fs::path modules = directory / "modules.json";
  std::vector<fs::path> names;
  if (!fs::exists(modules)) return names;
  const io::Json list = io::read_json(modules);
  for (const io::Json& each : list) {
    io::JsonReader module(each, {modules.string()}, "[].");
    const fs::path own = path_of_module(module);
    if (!own.empty() && fs::is_directory(directory / own)) names.push_back(own);  // else the encoder, or without a file
  }
  return names;
}

std::vector<fs::path> files_of_module(const fs::path& directory) {
  std::vector<fs::path> files;
  std::error_code unreadable;  // then there is nothing to copy, and nothing that is read
  for (const auto& entry : fs::directory_iterator(directory, unreadable))
    if (entry.is_regular_file()) files.push_back(entry.path());
  return files;
}

void copy_sentence_files(io::Files& files, const fs::path& model, const fs::path& directory) {
  const fs::path from = directory_of(model);
  if (!fs::exists(from / "modules.json")) return;
  for (const std::string_view name : kSentenceFiles)
    if (fs::exists(from / name)) copy_file(files, from / name, directory / name);
  for (const fs::path& own : module_directories(from)) {
    files.make_directory(directory / own);
    for (const fs::path& file : files_of_module(from / own)) copy_file(files, file, directory / own / file.filename());
    files.sync_directory(directory / own);
  }
}

}  // namespace bertrand::bert
