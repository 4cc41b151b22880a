// The published sizes of BERT.
#include "bert/network/config.h"

#include <algorithm>

#include "io/error.h"

namespace bertrand::bert {
namespace {

struct Preset {
  std::string_view name;
  Dim layers, hidden;
};
constexpr Preset kPresets[] = {{"tiny", 2, 128},   {"mini", 4, 256},  {"small", 4, 512},
                               {"medium", 8, 512}, {"base", 12, 768}, {"large", 24, 1024}};

}  // namespace

bool Config::is_preset(std::string_view name) {
  return std::ranges::any_of(kPresets, [&](const Preset& p) { return p.name == name; });
}

std::vector<std::string> Config::preset_names() {
  std::vector<std::string> names;
  for (const Preset& preset : kPresets) names.emplace_back(preset.name);
  return names;
}

Config Config::preset(std::string_view name) {
  for (const Preset& p : kPresets)
    if (p.name == name) {
      Config c;
      c.num_hidden_layers = p.layers;
      c.hidden_size = p.hidden;
      c.num_attention_heads = p.hidden / 64;
      c.intermediate_size = 4 * p.hidden;
      return c;
    }
  fail(Failure::usage, "--config: expected {} or a file, got \"{}\"", fmt::join(preset_names(), ", "), name);
}

}  // namespace bertrand::bert
