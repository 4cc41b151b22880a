// Questions with four choices as SWAG has them, which a very small model learns: the right one is red.
#pragma once
#include <string>

namespace support {

inline std::string small_choices(int rows, bool labelled = true) {
  const std::string colours[] = {"blue", "green"}, animals[] = {"fish", "bird"};
  std::string text = ",video-id,fold-ind,startphrase,sent1,sent2,gold-source,ending0,ending1,ending2,ending3";
  text += labelled ? ",label\n" : "\n";
  for (int row = 0; row < rows; ++row) {
    const int right = row * 7 % 4;
    text += std::to_string(row) + ",v,1,-,the " + animals[row % 2] + ",one,gold";
    for (int i = 0; i < 4; ++i)
      text += ",\"" + (i == right ? "red" : colours[(row + i) % 2]) + " " + animals[i * row / 2 % 2] + ".\"";
    text += labelled ? "," + std::to_string(right) + "\n" : "\n";
  }
  return text;
}

}  // namespace support
