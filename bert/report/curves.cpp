// metrics.jsonl, line by line, and curves made short.
#include "bert/report/curves.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

#include "io/split.h"

namespace bertrand::report {
namespace {

struct Point {
  std::int64_t step = 0;
  double value = 0;  // NaN: not finite
};
using Curve = std::vector<Point>;

/// The lowest and the highest of each stretch, one that is not finite, and the last.
Curve shortened(const Curve& curve, std::size_t most) {
  if (curve.size() <= most) return curve;
  const std::size_t stretch = (2 * curve.size() + most - 1) / most;
  Curve few;
  for (std::size_t begin = 0; begin < curve.size(); begin += stretch) {
    const auto first = curve.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto end = curve.begin() + static_cast<std::ptrdiff_t>(std::min(begin + stretch, curve.size()));
    const auto is_bad = [](const Point& point) { return std::isnan(point.value); };
    Curve finite, kept;
    std::remove_copy_if(first, end, std::back_inserter(finite), is_bad);
    const auto [low, high] = std::ranges::minmax_element(finite, {}, &Point::value);
    if (!finite.empty()) kept.push_back(*low);
    if (low != high) kept.push_back(*high);
    if (const auto bad = std::find_if(first, end, is_bad); bad != end) kept.push_back(*bad);
    std::ranges::stable_sort(kept, {}, &Point::step);
    few.insert(few.end(), kept.begin(), kept.end());
  }
  if (few.back().step != curve.back().step) few.push_back(curve.back());
  return few;
}

}  // namespace

io::Json curves_of(std::string_view lines, std::size_t most, std::size_t& damaged) {
  std::vector<std::string> names;  // in the order of the file
  std::map<std::string, Curve> curves;
  damaged = 0;
  for (const std::string_view text : io::lines_of(lines)) {
    const auto line = io::try_parse_json(text);
    if (!line || !line->is_object() || !line->contains("step") || !line->at("step").is_number_integer()) {
      ++damaged;
      continue;
    }
    const auto step = line->at("step").get<std::int64_t>();
    for (const auto& [name, value] : line->items()) {
      if (name == "step" || name == "epoch" || name == "seconds" || !(value.is_number() || value.is_null())) continue;
      Curve& curve = curves[name];
      if (curve.empty()) names.push_back(name);
      curve.push_back({step, value.is_number() ? value.get<double>() : std::nan("")});
    }
  }
  io::Json all = io::Json::object();
  for (const std::string& name : names) {
    io::Json x = io::Json::array(), y = io::Json::array();
    for (const Point& point : shortened(curves.at(name), most)) {
      x.push_back(point.step);
      y.push_back(std::isnan(point.value) ? io::Json() : io::Json(point.value));
    }
    io::append(all, name, {{"x", std::move(x)}, {"y", std::move(y)}, {"points", curves.at(name).size()}});
  }
  return all;
}

}  // namespace bertrand::report
