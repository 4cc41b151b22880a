// Triples, candidates and judgements that a very small model learns: a passage is relevant if it is red.
#pragma once
#include <string>

namespace support {

inline std::string small_triples() {
  const std::string colours[] = {"blue", "green"}, animals[] = {"fish", "bird"};
  std::string triples;
  for (int i = 0; i < 24; ++i)
    triples += "the " + animals[i % 2] + "\tred " + animals[i / 2 % 2] + "\t" + colours[i % 2] + " " +
               animals[i / 4 % 2] + "\n";
  return triples;
}

/// Three passages of ten queries, p2 being red. The candidates of a query do not stand together.
inline std::string small_candidates() {
  const std::string colours[] = {"blue", "green", "red"}, animals[] = {"fish", "bird"};
  std::string candidates;
  for (int line = 0; line < 30; ++line) {
    const int query = line % 10, passage = line / 10;
    candidates += std::to_string(query) + "\tp" + std::to_string(passage) + "\ttwo " + animals[query % 2] + "\t" +
                  colours[passage] + " " + animals[line % 2] + "\n";
  }
  return candidates;
}

/// Of nine queries; `relevant` is the passage.
inline std::string small_judgements(const std::string& relevant = "p2") {
  std::string judgements;
  for (int query = 0; query < 9; ++query) judgements += std::to_string(query) + "\t0\t" + relevant + "\t1\n";
  return judgements;
}

}  // namespace support
