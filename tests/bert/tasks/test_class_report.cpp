// eval_report.tsv against scikit-learn's classification_report and confusion_matrix.
#include <doctest/doctest.h>

#include <ctime>
#include <numeric>

#include "bert/tasks/class_report.h"
#include "bert/tasks/metrics.h"

using namespace bertrand::tasks;

TEST_CASE("the report has the figures of scikit-learn and a class that never comes has zeros") {
  const LabelSet labels({"a", "b", "c", "d\te"});
  const std::vector<std::int32_t> truth = {0, 0, 1, 2, 2, 2, 1, 0}, predicted = {0, 1, 1, 2, 0, 2, 1, 0};
  CHECK(class_report(labels, predicted, truth) ==
        "label\tprecision\trecall\tf1\tsupport\n"
        "a\t0.6667\t0.6667\t0.6667\t3\n"
        "b\t0.6667\t1.0000\t0.8000\t2\n"
        "c\t1.0000\t0.6667\t0.8000\t3\n"
        "d e\t0.0000\t0.0000\t0.0000\t0\n"
        "macro avg\t0.7778\t0.7778\t0.7556\t8\n"
        "weighted avg\t0.7917\t0.7500\t0.7500\t8\n"
        "\n"
        "true \\ predicted\ta\tb\tc\td e\n"
        "a\t2\t1\t0\t0\n"
        "b\t0\t2\t0\t0\n"
        "c\t1\t0\t2\t0\n"
        "d e\t0\t0\t0\t0\n");
}

TEST_CASE("the report and the mean F1 of very many classes take what grows with their number and not with its square") {
  constexpr std::size_t kClasses = 200'000;
  std::vector<std::string> names;
  for (std::size_t k = 0; k < kClasses; ++k) names.push_back(std::to_string(k));
  std::vector<std::int32_t> truth(kClasses);
  std::iota(truth.begin(), truth.end(), 0);
  const std::string report = class_report(LabelSet(names), truth, truth);
  CHECK(report.ends_with("weighted avg\t1.0000\t1.0000\t1.0000\t200000\n"));  // no matrix
  const std::clock_t begin = std::clock();
  CHECK(macro_f1(truth, truth) == 1);
  CHECK(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC < 5);
}

TEST_CASE("the report of several labels counts each label by itself") {
  const std::vector<std::int32_t> truth = {1, 0, 1, 1, 0, 0}, predicted = {1, 1, 0, 1, 0, 1};
  CHECK(multi_label_report(LabelSet({"a", "b"}), predicted, truth) ==
        "label\tprecision\trecall\tf1\tsupport\n"
        "a\t1.0000\t0.5000\t0.6667\t2\n"
        "b\t0.3333\t1.0000\t0.5000\t1\n"
        "macro avg\t0.6667\t0.7500\t0.5833\t3\n"
        "weighted avg\t0.7778\t0.6667\t0.6111\t3\n");
}

TEST_CASE("a label that never comes counts in the averages of several labels, as in those of scikit-learn") {
  // The figures of z are zeros, so the mean over the three labels is (2/3 + 1 + 0) / 3 of the precision,
  // (1 + 1/2 + 0) / 3 of the recall and (4/5 + 2/3 + 0) / 3 of F1.
  const std::vector<std::int32_t> truth = {1, 0, 0, 1, 1, 0, 0, 1, 0}, predicted = {1, 0, 0, 1, 0, 0, 1, 1, 0};
  CHECK(multi_label_report(LabelSet({"x", "y", "z"}), predicted, truth) ==
        "label\tprecision\trecall\tf1\tsupport\n"
        "x\t0.6667\t1.0000\t0.8000\t2\n"
        "y\t1.0000\t0.5000\t0.6667\t2\n"
        "z\t0.0000\t0.0000\t0.0000\t0\n"
        "macro avg\t0.5556\t0.5000\t0.4889\t4\n"
        "weighted avg\t0.8333\t0.7500\t0.7333\t4\n");
}

TEST_CASE("a class that is only predicted counts in the mean over the classes") {
  const std::vector<std::int32_t> truth = {0, 0}, predicted = {0, 1};
  CHECK(class_report(LabelSet({"a", "b", "c"}), predicted, truth)
            .starts_with("label\tprecision\trecall\tf1\tsupport\n"
                         "a\t1.0000\t0.5000\t0.6667\t2\n"
                         "b\t0.0000\t0.0000\t0.0000\t0\n"
                         "c\t0.0000\t0.0000\t0.0000\t0\n"
                         "macro avg\t0.5000\t0.2500\t0.3333\t2\n"
                         "weighted avg\t1.0000\t0.5000\t0.6667\t2\n"));
}

TEST_CASE("a confusion matrix is written of as many classes as it may have and of no more") {
  for (const std::size_t classes : {kMostOfMatrix, kMostOfMatrix + 1}) {
    std::vector<std::string> names;
    for (std::size_t k = 0; k < classes; ++k) names.push_back(std::to_string(k));
    const std::vector<std::int32_t> first = {0};
    const std::string report = class_report(LabelSet(names), first, first);
    CHECK((report.find("true \\ predicted") != std::string::npos) == (classes == kMostOfMatrix));
  }
}
