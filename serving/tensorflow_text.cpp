// JSON as TensorFlow Serving prints it.
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "serving/tensorflow.h"

namespace bertrand::serving::tensorflow {
namespace {

using io::Json;

/// Six digits if they read back to the same float, else nine; a whole number ends in .0.
std::string number_text(const Json& value) {
  if (value.is_number_integer()) return io::json_text(value);
  const auto number = value.get<float>();
  std::string text = fmt::format("{:.6g}", number);
  if (std::strtof(text.c_str(), nullptr) != number) text = fmt::format("{:.9g}", number);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

void new_line(int level, std::string& out) { out.append("\n").append(static_cast<std::size_t>(4 * level), ' '); }

void write(const Json& value, int level, bool arrays_on_one_line, std::string& out) {
  if (value.is_object()) {
    out += '{';
    bool is_first = true;
    for (const auto& [key, each] : value.items()) {
      if (!std::exchange(is_first, false)) out += ',';
      new_line(level + 1, out);
      out += io::json_text(key) + ": ";
      write(each, level + 1, arrays_on_one_line, out);
    }
    if (!is_first) new_line(level, out);
    out += '}';
  } else if (value.is_array()) {
    out += '[';
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (i > 0) out += arrays_on_one_line ? ", " : ",";
      if (!arrays_on_one_line) new_line(level + 1, out);
      write(value[i], level + 1, arrays_on_one_line, out);
    }
    if (!value.empty() && !arrays_on_one_line) new_line(level, out);
    out += ']';
  } else {
    out += value.is_number() ? number_text(value) : io::json_text(value);
  }
}

}  // namespace

std::string row_text(const std::vector<Json>& predictions) {
  std::string out = "{\n    \"predictions\": [";
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    const bool is_object = predictions[i].is_object();
    if (i > 0) out += is_object ? "," : ", ";
    if (is_object) new_line(2, out);
    write(predictions[i], 2, true, out);
  }
  return out + "\n    ]\n}";
}

std::string column_text(const Json& outputs) {
  std::string out;
  write({{"outputs", outputs}}, 0, false, out);
  return out;
}

}  // namespace bertrand::serving::tensorflow
