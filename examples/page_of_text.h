// A page of text for the examples: six sentences and their vocabulary.
#pragma once
#include <set>
#include <sstream>
#include <string>
#include <vector>

inline const std::vector<std::string> kPage = {
    "the sun rises in the east and sets in the west",
    "the moon follows the earth and the earth follows the sun",
    "rain falls from clouds that rise from the sea",
    "a river carries the rain back to the sea",
    "in winter the rain turns to snow",
    "in spring the snow turns to water and feeds the river",
};

/// The vocabulary in the form of vocab.txt: a token a line, whose number is its id.
inline std::string vocabulary_of_page() {
  std::string lines = "[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
  std::set<std::string> seen;
  for (const std::string& sentence : kPage) {
    std::istringstream words(sentence);
    for (std::string word; words >> word;)
      if (seen.insert(word).second) lines += word + "\n";
  }
  return lines;
}
