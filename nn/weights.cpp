#include "nn/weights.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "io/units.h"
#include "nn/tensor_file.h"

namespace bertrand::nn {

std::string joined(const std::vector<std::string>& names, std::size_t most) {
  std::string text;
  for (std::size_t i = 0; i < std::min(most, names.size()); ++i) text += (i ? ", " : "") + names[i];
  return names.size() > most ? text + fmt::format(" and {} more", names.size() - most) : text;
}

std::string LoadReport::text() const {
  std::string text = fmt::format("weights: {} loaded, {} missing, {} unused, {} mis-shaped", loaded.size(),
                                 missing.size(), unused.size(), mis_shaped.size());
  if (!missing.empty()) text += "\n  missing, initialised from the seed: " + joined(missing);
  if (!unused.empty()) text += "\n  unused: " + joined(unused);
  if (!mis_shaped.empty()) text += "\n  mis-shaped: " + joined(mis_shaped);
  return text;
}

LoadReport compare(const std::vector<ParameterSet::Segment>& segments, const StoredTensors& stored,
                   const std::string& source, const std::function<bool(const std::string&)>& may_be_mis_shaped) {
  LoadReport report;
  std::vector<std::string> refused;
  std::set<std::string_view> names;
  for (const auto& segment : segments) {
    names.insert(segment.name);
    const auto found = stored.find(segment.name);
    const bool fits = found != stored.end() && std::ranges::equal(segment.shape.dims(), found->second.dims);
    (fits ? report.loaded : report.missing).push_back(segment.name);
    if (found == stored.end() || fits) continue;
    const bool accepted = may_be_mis_shaped && may_be_mis_shaped(segment.name);
    report.mis_shaped.push_back(fmt::format("{}: expected {} ({}), got [{}]", found->second.name, segment.shape,
                                            accepted ? "the task" : "config.json",
                                            fmt::join(found->second.dims, ", ")));
    if (!accepted) refused.push_back(report.mis_shaped.back());
  }
  if (!refused.empty())
    fail(Failure::model,
         "{}: {} of another shape than the model's: {}; hint: config.json, vocabulary and weights must be of "
         "one model",
         source, io::counted(refused.size(), "tensor"), joined(refused, 3));
  for (const auto& [name, tensor] : stored)
    if (!names.contains(name)) report.unused.push_back(tensor.name);
  return report;
}

LoadReport load(ParameterSet& parameters, const StoredTensors& stored, const std::string& source,
                const std::function<bool(const std::string&)>& may_be_mis_shaped) {
  LoadReport report = compare(parameters.segments(), stored, source, may_be_mis_shaped);
  const auto master = [&](const std::string& name) { return parameters.master(*parameters.find(name)); };
  for (const std::string& name : report.loaded) stored.at(name).check();
  for (const std::string& name : report.loaded) stored.at(name).load(master(name));
  parameters.round_masters();
  return report;
}

LoadReport load(ParameterSet& parameters, const std::filesystem::path& file) {
  const io::SafetensorsFile opened(file);
  StoredTensors stored;
  for (const io::SafetensorsEntry& entry : opened.entries()) stored.emplace(entry.name, stored_tensor(entry, file));
  return load(parameters, stored, file.string());
}

void require(const LoadReport& report, const std::filesystem::path& source,
             const std::function<bool(const std::string&)>& may_be_missing) {
  std::vector<std::string> lacking;
  for (const std::string& name : report.missing)
    if (!may_be_missing(name)) lacking.push_back(name);
  if (!lacking.empty())
    fail(Failure::model, "{}: weights: expected every tensor of the model, got none for {}: {}; hint: {}",
         source.string(), lacking.size(), joined(lacking, 4),
         report.loaded.empty() && !report.unused.empty()
             ? fmt::format("the names there are others, as \"{}\"", report.unused[0])
             : "are config.json and the weights of one BERT?");
}

std::map<std::string, std::uint32_t> save(const ParameterSet& parameters, io::Files& files,
                                          const std::filesystem::path& file) {
  std::vector<NamedTensor> tensors;
  for (const auto& segment : parameters.segments()) tensors.push_back({segment.name, parameters.master(segment)});
  io::FileWriter out(files, file);
  auto checksums = write_tensors(out, tensors);
  out.finish();
  return checksums;
}

std::map<std::string, std::uint32_t> save(const ParameterSet& parameters, const std::filesystem::path& file) {
  return save(parameters, io::Files::system(), file);
}

}  // namespace bertrand::nn
