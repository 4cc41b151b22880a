// Real weights: a public six-layer BERT, against PyTorch's rows in double precision.
#include <doctest/doctest.h>

#include "bert/directory/config_file.h"
#include "bert/directory/model_directory.h"
#include "bert/network/bert.h"
#include "bert/network/golden.h"

using namespace bertrand;
using golden::Case;
using golden::cpu;

namespace {

struct Encoder : nn::Module {
  explicit Encoder(const bert::Config& config) : bert(in("bert"), config) {}
  bert::Bert bert;
};

bool weights_present() {
  if (std::filesystem::exists(std::filesystem::path(paths::minilm) / "model.safetensors")) return true;
  MESSAGE("SKIPPED: " << paths::minilm << " is not there; hint: ../shared/data/get_minilm.sh " << paths::minilm);
  return false;
}

/// Row `row` of x, or the mean of all rows.
std::vector<double> row_of(const Tensor& x, Dim row) { return ops::to_host<double>(x.rows(row, row + 1)); }
std::vector<double> mean_of_rows(const Tensor& x) {
  return ops::to_host<double>(ops::scale(ops::sum_to(x, {x.shape()[1]}), 1 / static_cast<double>(x.shape()[0])));
}

}  // namespace

TEST_CASE("rows of real weights equal PyTorch's, all texts in one batch") {
  if (!golden::present("minilm") || !weights_present()) return;
  const Case golden("minilm");
  const std::filesystem::path directory(paths::minilm);
  Encoder model(bert::read_config_file(directory / "config.json", bert::UnknownKeys::keep));
  nn::ParameterSet parameters(model, cpu(), {.initialize = false});
  const nn::LoadReport report = bert::load_weights(directory, parameters);
  CHECK(report.missing.empty());
  CHECK(report.mis_shaped.empty());

  std::vector<bert::Sequence> sequences;
  for (const auto& text : golden.info["cases"])
    sequences.push_back({.token_ids = text["token_ids"], .token_types = text["token_types"], .key = sequences.size()});
  REQUIRE(sequences.size() >= 5);
  const NoGrad guard;
  const bert::PackedBatch batch = bert::pack(sequences, cpu());
  const Variable x = model.bert(batch, {});
  const Tensor pooled = (*model.bert.pooler)(gather_rows(x, batch.first_rows)).value();
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    const Tensor rows = x.value().rows(batch.offsets[s], batch.offsets[s + 1]);
    const auto difference = [&](const std::vector<double>& got, const char* what) {
      return golden::greatest_difference(got, golden.figures(std::to_string(s) + "." + what));
    };
    CAPTURE(s);
    CHECK(difference(row_of(rows, 0), "first_row") <= 2e-5);
    CHECK(difference(row_of(rows, rows.shape()[0] - 1), "last_row") <= 2e-5);
    CHECK(difference(mean_of_rows(rows), "mean_of_rows") <= 2e-5);
    CHECK(difference(row_of(pooled, static_cast<Dim>(s)), "pooled") <= 2e-5);
  }
}
