// Tables of entities against seqeval's classification_report.
#include <doctest/doctest.h>

#include "bert/tasks/entity_report.h"

using namespace bertrand::tasks;

namespace {

EntityScores scores_of(const std::string& other) {
  EntityCounter counter;
  counter.add(std::vector<std::string>{"B-PER", "I-PER", "O", "B-LOC"},
              std::vector<std::string>{"B-PER", "O", "O", "B-LOC"});
  counter.add(std::vector<std::string>{"O", "B-" + other}, std::vector<std::string>{"B-LOC", "O"});
  return counter.scores();
}

}  // namespace

TEST_CASE("the report of entities has each type and the three means") {
  CHECK(entity_report(scores_of("A\tB")) ==
        "entity\tprecision\trecall\tf1\tsupport\n"
        "A B\t0.0000\t0.0000\t0.0000\t1\n"
        "LOC\t0.5000\t1.0000\t0.6667\t1\n"
        "PER\t0.0000\t0.0000\t0.0000\t1\n"
        "micro avg\t0.3333\t0.3333\t0.3333\t3\n"
        "macro avg\t0.1667\t0.3333\t0.2222\t3\n"
        "weighted avg\t0.1667\t0.3333\t0.2222\t3\n");
}

TEST_CASE("the table of entities is that of seqeval to the byte, as wide as its longest name") {
  CHECK(entity_table(scores_of("ORGANISATION-X")) ==
        "                precision    recall  f1-score   support\n\n"
        "           LOC     0.5000    1.0000    0.6667         1\n"
        "ORGANISATION-X     0.0000    0.0000    0.0000         1\n"
        "           PER     0.0000    0.0000    0.0000         1\n\n"
        "     micro avg     0.3333    0.3333    0.3333         3\n"
        "     macro avg     0.1667    0.3333    0.2222         3\n"
        "  weighted avg     0.1667    0.3333    0.2222         3\n");
  const std::string table = entity_table(scores_of("X"));
  CHECK(table.starts_with("              precision "));
  CHECK(table.find("\n           X     0.0000") != table.npos);
  CHECK(table.find("\nweighted avg  ") != table.npos);
}

TEST_CASE("a type cannot steer the terminal that shows its table, and letters of several bytes are one column each") {
  const std::string table = entity_table(scores_of("\x1B[31mÉÉÉÉÉÉÉÉ"));
  CHECK(table.find('\x1B') == table.npos);
  CHECK(table.find("\n [31mÉÉÉÉÉÉÉÉ     0.0000") != table.npos);
}
