// Words with labels that a very small model learns.
#pragma once
#include <string>

namespace support {

/// Sentences of "one red fish ." whose animals are entities of their colour; with their labels or without.
inline std::string small_sentences(int count, bool labelled = true) {
  const char *colours[] = {"red", "green", "blue"}, *animals[] = {"fish", "birds"};
  std::string text;
  const auto word = [&](const std::string& name, const std::string& label) {
    text += labelled ? name + '\t' + label + '\n' : name + '\n';
  };
  for (int i = 0; i < count; ++i) {
    word(i % 2 ? "the" : "one", "O");
    word(colours[i % 3], "B-A");
    word(animals[i / 3 % 2], "I-A");
    if (i % 5 == 0) word("birds", "B-B");
    word(".", "O");
    text += '\n';
  }
  return text;
}

}  // namespace support
