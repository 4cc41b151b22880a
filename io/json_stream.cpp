// The guards of the JSON parser.
#include "io/json_stream.h"

#include <algorithm>

namespace bertrand::io {
namespace {

constexpr std::size_t kDeepest = 64;  // whatever walks through a value recursively then has enough stack

/// What nlohmann's parser says, without its number, its place and what it read or hoped for.
std::string reason_of(std::string_view text) {
  const std::size_t place_end = text.find(" - ");
  text.remove_prefix(place_end != std::string_view::npos ? place_end + 3 : text.find("] ") + 2);
  return fmt::format("{:.100}", text.substr(0, text.find(';')));
}

}  // namespace

void JsonStream::read(std::string_view text, const std::function<void()>& let_go) {
  constexpr std::size_t kPart = std::size_t{1} << 24;
  for (std::size_t begin = 0; begin < text.size(); begin += kPart) {
    // The parser would take a NUL for the end of its input.
    if (const std::size_t nul = text.substr(begin, kPart).find('\0'); nul != std::string_view::npos)
      fail(source_.failure, "{}: expected JSON, got a NUL at byte {}", source_.name, begin + nul + 1);
    if (let_go) let_go();
  }
  text_ = text;
  Json::sax_parse(text, this);
}

void JsonStream::enter() {
  if (keys_.size() == kDeepest)
    fail(source_.failure, "{}: expected at most {} levels of values in each other, got more", place(), kDeepest);
}

void JsonStream::refuse_nul(const std::string& text) const {
  if (text.find('\0') != std::string::npos)
    fail(source_.failure, "{}: expected text without \\u0000, got one", place());
}

bool JsonStream::start_object(std::size_t) {
  enter();
  open_object();
  keys_.emplace_back();
  return true;
}

bool JsonStream::end_object() {
  close_object();
  keys_.pop_back();
  return true;
}

bool JsonStream::start_array(std::size_t) {
  enter();
  open_list();
  keys_.emplace_back();
  return true;
}

bool JsonStream::end_array() {
  close_list();
  keys_.pop_back();
  return true;
}

bool JsonStream::key(std::string& key) {
  const auto [own, is_new] = keys_.back().insert(key);
  name(key);  // first, so that the place has it
  refuse_nul(*own);
  if (!is_new) fail(source_.failure, "{}: {}: expected once, got it twice", place(), shown(*own));
  return true;
}

bool JsonStream::string(std::string& value) {
  refuse_nul(value);
  text(value);
  return true;
}

bool JsonStream::parse_error(std::size_t position, const std::string&, const Json::exception& error) {
  constexpr int kOutOfRange = 406;
  // The line is left out of a text that is one line: then the source says which.
  std::string where = source_.name;
  if (text_.find('\n') != std::string_view::npos)
    where += fmt::format(":{}", 1 + std::ranges::count(text_.substr(0, std::min(position, text_.size())), '\n'));
  if (error.id == kOutOfRange) fail(source_.failure, "{}: expected JSON, got a number that no double can hold", where);
  fail(source_.failure, "{}: expected JSON, got a syntax error at byte {}: {}", where, position,
       reason_of(error.what()));
}

}  // namespace bertrand::io
