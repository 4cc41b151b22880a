// How a failed CHECK shows containers; doctest alone prints {?}. Every test includes this file (tests/CMakeLists.txt).
#pragma once
#include <doctest/doctest.h>

#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace support {

template <class T>
std::string shown(const T& value) {
  std::ostringstream out;
  if constexpr (std::is_convertible_v<T, std::string>) out << '"' << std::string(value) << '"';
  else out << doctest::toString(value).c_str();
  return out.str();
}

/// The first elements, and how many there are.
template <class Range>
doctest::String shown_elements(const Range& range, std::size_t size) {
  constexpr std::size_t kMost = 12;
  std::string text = "{";
  std::size_t count = 0;
  for (const auto& element : range) {
    if (count++ == kMost) break;
    text += (count > 1 ? ", " : "") + shown(element);
  }
  if (size > kMost) text += ", … " + std::to_string(size) + " elements";
  return (text + "}").c_str();
}

}  // namespace support

namespace doctest {

template <class A, class B>
struct StringMaker<std::pair<A, B>> {
  static String convert(const std::pair<A, B>& pair) {
    return (support::shown(pair.first) + ": " + support::shown(pair.second)).c_str();
  }
};
template <class T>
struct StringMaker<std::optional<T>> {
  static String convert(const std::optional<T>& value) { return value ? support::shown(*value).c_str() : "none"; }
};
template <>
struct StringMaker<std::vector<bool>> {
  static String convert(const std::vector<bool>& values) {
    return support::shown_elements(std::vector<int>(values.begin(), values.end()), values.size());
  }
};
template <class T>
struct StringMaker<std::vector<T>> {
  static String convert(const std::vector<T>& values) { return support::shown_elements(values, values.size()); }
};
template <class T>
struct StringMaker<std::set<T>> {
  static String convert(const std::set<T>& values) { return support::shown_elements(values, values.size()); }
};
template <class K, class V>
struct StringMaker<std::map<K, V>> {
  static String convert(const std::map<K, V>& values) { return support::shown_elements(values, values.size()); }
};

}  // namespace doctest
