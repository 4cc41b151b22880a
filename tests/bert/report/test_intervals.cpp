// The intervals of an evaluation are those of figures of rows that are drawn again and again.
#include <doctest/doctest.h>

#include <functional>
#include <map>
#include <random>

#include "bert/report/evaluation.h"
#include "bert/report/intervals.h"
#include "bert/tasks/metrics.h"
#include "support/growth.h"

namespace {

using namespace bertrand;
using Figures = std::map<std::string, double>;

/// What 95 % of the figures of drawn rows lie in.
io::Json drawn(std::size_t rows, const std::function<Figures(const std::vector<std::size_t>& chosen)>& figures_of) {
  std::mt19937_64 random(12345);
  std::map<std::string, std::vector<double>> values;
  for (int k = 0; k < 1000; ++k) {
    std::vector<std::size_t> chosen(rows);
    for (std::size_t& one : chosen) one = random() % rows;
    for (const auto& [name, value] : figures_of(chosen)) values[name].push_back(value);
  }
  io::Json all = io::Json::object();
  for (auto& [name, list] : values) {
    std::ranges::sort(list);
    all[name] = {list[25], list[974]};
  }
  all["resamples"] = 1000;
  return all;
}

}  // namespace

TEST_CASE("the intervals of classes are those of each metric of drawn rows, and F1 is of the positive one of two") {
  using enum tasks::Metric;
  for (const std::int32_t classes : {2, 3}) {
    CAPTURE(classes);
    report::Rows rows{.kind = tasks::Kind::classification,
                      .labels = std::vector<std::string>(static_cast<std::size_t>(classes), "a label"),
                      .metrics = {accuracy, matthews, f1, macro_f1},
                      .positive = 0};
    std::mt19937 random(1);
    for (int i = 0; i < 30; ++i) {
      const auto truth = static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(classes));
      const std::int32_t predicted = random() % 3 == 0 ? (truth + 1) % classes : truth;
      rows.add({.loss = 0.1 * i}, std::vector{truth}, std::vector{predicted});
    }
    CHECK(report::intervals(rows) == drawn(30, [&](const std::vector<std::size_t>& chosen) {
            std::vector<std::int32_t> truth, predicted;
            double loss = 0;
            for (const std::size_t i : chosen) {
              truth.push_back(rows.truth(rows.rows[i])[0]);
              predicted.push_back(rows.predicted(rows.rows[i])[0]);
              loss += rows.rows[i].loss / 30;
            }
            const double macro = tasks::macro_f1(predicted, truth);
            return Figures{{"eval_accuracy", tasks::accuracy(predicted, truth)},
                           {"eval_matthews", tasks::matthews(predicted, truth)},
                           {"eval_f1", classes == 2 ? tasks::f1(predicted, truth, 0) : macro},
                           {"eval_macro_f1", macro},
                           {"eval_loss", loss}};
          }));
  }
}

TEST_CASE("the intervals of scores are those of the correlations of drawn rows") {
  report::Rows rows{.kind = tasks::Kind::regression, .metrics = {tasks::Metric::pearson, tasks::Metric::spearman}};
  std::mt19937 random(1);
  for (int i = 0; i < 30; ++i) {
    const double target = static_cast<double>(random() % 7), score = target + static_cast<double>(random() % 5);
    rows.add({.target = target, .score = score, .loss = (score - target) * (score - target)}, {}, {});
  }
  CHECK(report::intervals(rows) == drawn(30, [&](const std::vector<std::size_t>& chosen) {
          std::vector<double> target, score;
          double loss = 0;
          for (const std::size_t i : chosen) {
            target.push_back(rows.rows[i].target);
            score.push_back(rows.rows[i].score);
            loss += rows.rows[i].loss / 30;
          }
          return Figures{{"eval_pearson", tasks::pearson(score, target)},
                         {"eval_spearman", tasks::spearman(score, target)},
                         {"eval_loss", loss}};
        }));
}

TEST_CASE("the intervals of answers are those of drawn questions in percent, and of one question there are none") {
  std::string lines = "{\"kind\":\"answers\"}\n";
  std::vector<double> exact, f1;
  const auto evaluated = [&] { return report::evaluation_of(lines, {}); };
  for (int i = 0; i < 20; ++i) {
    exact.push_back(i % 3 == 0 ? 1 : 0);
    f1.push_back(i % 3 == 0 ? 1 : (i % 5) / 5.0);
    lines +=
        fmt::format(R"({{"text":"t","prediction":"p","label":["l"],"exact":{},"f1":{}}})", exact.back(), f1.back());
    lines += '\n';
    if (i < 2) CHECK(evaluated()["intervals"].contains("eval_f1") == (i == 1));
  }
  CHECK(evaluated()["intervals"] == drawn(20, [&](const std::vector<std::size_t>& chosen) {
          double exacts = 0, f1s = 0;
          for (const std::size_t i : chosen) exacts += exact[i], f1s += f1[i];
          return Figures{{"eval_exact_match", 5 * exacts}, {"eval_f1", 5 * f1s}};
        }));
  CHECK(evaluated()["wrong"][0]["prediction"] == io::Json::array({"p"}));
  CHECK(evaluated()["wrong"][0]["right"] == false);
}

TEST_CASE("the wrong answers are those that are not exact, whatever their F1, and the fewest shared words come first") {
  const auto line = [](const std::string& text, double exact, double f1) {
    return fmt::format(R"({{"text":"{}","prediction":"p","label":["l"],"exact":{},"f1":{}}})", text, exact, f1) + "\n";
  };
  const io::Json wrong =
      report::evaluation_of("{\"kind\":\"answers\"}\n" + line("an article alone", 1, 0) + line("other order", 0, 1) +
                                line("right", 1, 1) + line("wrong", 0, 0),
                            {})["wrong"];
  REQUIRE(wrong.size() == 2);
  CHECK(wrong[0]["text"] == "wrong");
  CHECK(wrong[1]["text"] == "other order");
}

TEST_CASE("the F1 of two classes is of the one that the header names, and of the second if it names none") {
  const auto f1_of = [](const std::string& positive, int label) {
    std::string lines = R"({"kind":"classification","labels":["no","yes"],"metrics":["f1"])" + positive + "}\n";
    for (int i = 0; i < 2; ++i)
      lines += fmt::format("{{\"text\":\"t\",\"label\":{0},\"prediction\":{0},\"probabilities\":[0.5,0.5]}}\n", label);
    return report::evaluation_of(lines, {})["intervals"]["eval_f1"];
  };
  CHECK(f1_of(R"(,"positive":0)", 0) == io::Json({1.0, 1.0}));
  CHECK(f1_of("", 0) == io::Json({0.0, 0.0}));
  CHECK(f1_of("", 1) == io::Json({1.0, 1.0}));
}

TEST_CASE("the time for rows of several labels grows with the labels that they have, not with those that there are") {
  const auto rows_among = [](int labels) {
    io::Json names = io::Json::array();
    for (int j = 0; j < labels; ++j) names.push_back(std::to_string(j));
    return report::Rows{.kind = tasks::Kind::multi_label, .labels = names, .metrics = {tasks::Metric::macro_f1}};
  };
  const double growth = support::growth_by_four(100, [&](int labels) {
    report::Rows rows = rows_among(labels);
    for (std::int32_t i = 0; i < 4000; ++i) rows.add({}, std::vector{i % labels}, std::vector{0, i % labels});
    CHECK(report::intervals(rows).contains("eval_macro_f1"));
  });
  CHECK(growth < 2);
}
