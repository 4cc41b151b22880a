// The value of a JSON text, its text, and the typed reader.
#include "io/json.h"

#include <algorithm>

#include "io/files.h"
#include "io/input_files.h"
#include "io/json_stream.h"

namespace bertrand::io {
namespace {

/// Builds the value that the parser reads piece by piece. nlohmann's own builder searches an object for each new key.
class Builder : public JsonStream {
 public:
  using JsonStream::JsonStream;
  Json take() { return std::move(root_); }

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(std::int64_t value) override { return put(value); }
  bool number_unsigned(std::uint64_t value) override { return put(value); }
  bool number_float(double value, const std::string& text) override {
    const bool is_whole = text.find_first_of(".eE") == std::string::npos;
    if (!is_whole || source().long_number == LongNumber::round) return put(value);
    if (source().long_number == LongNumber::text) return put(text);
    fail(source().failure, "{}: expected whole numbers of at most 64 bits, got {}; hint: write it as a string",
         source().name, text.substr(0, 40));
  }

 private:
  void open_object() override { open_.push_back(&add(Json::object())); }
  void open_list() override { open_.push_back(&add(Json::array())); }
  void close_object() override { open_.pop_back(); }
  void close_list() override { open_.pop_back(); }
  void name(std::string& key) override { key_ = std::move(key); }
  void text(std::string& value) override { put(std::move(value)); }

  template <class T>
  bool put(T&& value) {
    add(Json(std::forward<T>(value)));
    return true;
  }
  Json& add(Json value) {
    if (open_.empty()) return root_ = std::move(value);
    if (open_.back()->is_array()) {
      open_.back()->push_back(std::move(value));
      return open_.back()->back();
    }
    append(*open_.back(), std::move(key_), std::move(value));
    return open_.back()->get_ref<Json::object_t&>().back().second;
  }

  Json root_;
  std::string key_;
  std::vector<Json*> open_;  // the objects and lists around the value that comes next
};

}  // namespace

Json parse_json(std::string_view text, const JsonSource& source) {
  Builder builder(source);
  builder.read(text);
  return builder.take();
}

std::optional<Json> try_parse_json(std::string_view text) {
  try {
    return parse_json(text, {.name = ""});
  } catch (const Error&) {
    return {};
  }
}

Json read_json(const std::filesystem::path& file) {
  return parse_json(read_small_file(file, "JSON"), {.name = file.string()});
}

void append(Json& object, std::string key, Json value) {
  if (object.is_null()) object = Json::object();
  Json::object_t& members = object.get_ref<Json::object_t&>();
  // A vector that grows by itself would copy all values: its keys are constant, so to move a pair may throw.
  if (members.size() == members.capacity()) {
    Json::object_t larger;
    larger.reserve(std::max<std::size_t>(1, 2 * members.size()));
    for (auto& [name, member] : members) larger.emplace_back(name, std::move(member));
    members.swap(larger);
  }
  members.emplace_back(std::move(key), std::move(value));
}

std::string json_text(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string shown(const Json& json) {
  constexpr std::size_t kMost = 40;
  // A large value is not shown: its size says enough.
  std::string text = json.is_structured() && json.size() > 1000
                         ? fmt::format("{} of {} values", json.is_array() ? "a list" : "an object", json.size())
                         : json.dump(-1, ' ', true, Json::error_handler_t::replace);
  return text.size() > kMost ? text.substr(0, kMost) + (json.is_string() ? "…\"" : "…") : text;
}

JsonReader::JsonReader(const Json& json, JsonSource source, std::string place)
    : json_(json), source_(std::move(source)), place_(std::move(place)) {
  if (!json.is_object())
    fail(source_.failure, "{}: {}expected a JSON object, got {}", source_.name,
         place_.empty() ? "" : place_.substr(0, place_.size() - 1) + ": ", shown(json));
}

const Json* JsonReader::find(std::string_view key) {
  pass_over(key);
  const auto it = json_.find(key);
  return it == json_.end() ? nullptr : &*it;
}

void JsonReader::refuse(std::string_view key, std::string_view expected, const Json* got) const {
  fail(source_.failure, "{}: {}{}: expected {}, got {}", source_.name, place_, key, expected,
       got ? shown(*got) : "none");
}

void JsonReader::expect(std::string_view key, const Json& expected) {
  if (const Json* got = find(key); got && !got->is_null() && *got != expected) refuse(key, shown(expected), got);
}

std::int64_t JsonReader::whole(std::string_view key, Whole range, std::optional<std::int64_t> fallback) {
  const Json* got = find(key);
  if (!got && fallback) return *fallback;
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const bool fits =
      got && got->is_number_integer() && !(got->is_number_unsigned() && got->get<std::uint64_t>() > kMost);
  const std::int64_t value = fits ? got->get<std::int64_t>() : 0;
  if (!fits || value < range.least || value > range.most)
    refuse(key, fmt::format("an integer in [{}, {}]", range.least, range.most), got);
  return value;
}

double JsonReader::real(std::string_view key, Real range, std::optional<double> fallback) {
  const Json* got = find(key);
  if ((!got || got->is_null()) && fallback) return *fallback;
  const double value = got && got->is_number() ? got->get<double>() : std::numeric_limits<double>::quiet_NaN();
  if (!(value >= range.least && value <= range.most))
    refuse(key, fmt::format("a number in [{}, {}]", range.least, range.most), got);
  return value;
}

std::string JsonReader::text(std::string_view key, std::optional<std::string> fallback) {
  const Json* got = find(key);
  if ((!got || got->is_null()) && fallback) return *fallback;
  if (!got || !got->is_string()) refuse(key, "a string", got);
  return got->get<std::string>();
}

bool JsonReader::flag(std::string_view key, std::optional<bool> fallback) {
  const Json* got = find(key);
  if ((!got || got->is_null()) && fallback) return *fallback;
  if (!got || !got->is_boolean()) refuse(key, "true or false", got);
  return got->get<bool>();
}

JsonReader JsonReader::object(std::string_view key) {
  const Json* got = find(key);
  if (!got || !got->is_object()) refuse(key, "an object", got);
  return JsonReader(*got, source_, fmt::format("{}{}.", place_, key));
}

const Json& JsonReader::list(std::string_view key) {
  const Json* got = find(key);
  if (!got || !got->is_array()) refuse(key, "a list", got);
  return *got;
}

}  // namespace bertrand::io
