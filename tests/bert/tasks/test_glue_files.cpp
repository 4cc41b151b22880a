// The real files of GLUE and three other sets; the counts are Python's csv.reader's, without quoting for the TSV files.
#include <doctest/doctest.h>

#include <filesystem>

#include "bert/data/tf_example.h"
#include "bert/tasks/encode.h"
#include "bert/tasks/walked_table.h"
#include "io/tfrecord.h"
#include "support/paths.h"

using namespace bertrand;
using namespace bertrand::tasks;

namespace {

const std::string kData = paths::shared + "/data/";

bool have_data() {
  if (std::filesystem::exists(kData + "glue")) return true;
  MESSAGE("SKIPPED: no data in " << kData);
  return false;
}

WalkedTable labelled(const Task& task, const std::string& path, bool needs_label = true) {
  return walk_table(task, read_rows(task, kData + path, OnBadRow::fail), needs_label);
}

}  // namespace

TEST_CASE("the GLUE files have the rows that Python's csv.reader sees, and labels their tasks know") {
  if (!have_data()) return;
  struct Case {
    const char *task, *file;
    std::size_t rows;
  };
  const std::vector<Case> cases = {
      {"cola", "CoLA/train.tsv", 8551},  {"cola", "CoLA/dev.tsv", 1043},     {"mrpc", "MRPC/train.tsv", 3668},
      {"mrpc", "MRPC/dev.tsv", 408},     {"qnli", "QNLI/dev.tsv", 5463},     {"rte", "RTE/train.tsv", 2490},
      {"rte", "RTE/dev.tsv", 277},       {"sst2", "SST-2/train.tsv", 67349}, {"sst2", "SST-2/dev.tsv", 872},
      {"stsb", "STS-B/train.tsv", 5749}, {"stsb", "STS-B/dev.tsv", 1500},    {"wnli", "WNLI/train.tsv", 635},
      {"wnli", "WNLI/dev.tsv", 71},
  };
  for (const Case& c : cases) {
    CAPTURE(c.file);
    const Task task = named_task(c.task);
    const WalkedTable table = labelled(task, std::string("glue/") + c.file);
    CHECK(table.examples.size() == c.rows);
    const LabelSet labels = table.labels(task);
    for (std::size_t i = 0; i < table.examples.size(); ++i) REQUIRE(table.targets(task, labels, i).size() == 1);
  }
}

TEST_CASE("the first example of MRPC is read with its quotes") {
  if (!have_data()) return;
  const Task task = named_task("mrpc");
  const WalkedTable data = labelled(task, "glue/MRPC/train.tsv");
  const Example& first = data.examples.front();
  CHECK(first.text_a ==
        "Amrozi accused his brother , whom he called \" the witness \" , of deliberately distorting his evidence .");
  CHECK(first.text_b ==
        "Referring to him as only \" the witness \" , Amrozi accused his brother of deliberately distorting his "
        "evidence .");
  CHECK(data.targets(task, data.labels(task), 0) == std::vector<std::int32_t>{1});
  CHECK(first.line == 2);
}

TEST_CASE("banking77 is a custom CSV with 77 labels") {
  if (!have_data()) return;
  const Task task = custom_task({});
  const WalkedTable data = labelled(task, "intents/banking77/train.csv");
  CHECK(data.examples.size() == 10003);
  CHECK(data.labels(task).size() == 77);
}

TEST_CASE("a set in CoLA's columns is read from gzip, with labels and without") {
  if (!have_data()) return;
  const Task task = named_task("cola");
  CHECK(labelled(task, "paper_classification/train.tsv.gz").examples.size() > 100);
  const WalkedTable test = labelled(task, "paper_classification/test.tsv.gz", false);
  CHECK_FALSE(test.dataset.labelled);
  CHECK(test.examples.front().id == "26399369");
}

TEST_CASE("MRPC's dev file is encoded as google-research/bert's run_classifier.py does, token by token") {
  if (!have_data()) return;
  const text::Tokenizer tokenizer(text::Vocabulary::load(kData + "vocab/bert-base-uncased/vocab.txt"));
  const Task task = named_task("mrpc");
  const WalkedTable table = labelled(task, "glue/MRPC/dev.tsv");
  const LabelSet labels = table.labels(task);
  ExampleEncoder encoder(tokenizer, 128);
  EncodedDataset encoded;
  for (const Example& example : table.examples) encoder.append(table.dataset, example, encoded);

  io::RecordReader records(kData + "golden_finetune/mrpc/eval.tf_record");
  std::int64_t i = 0;
  for (std::string record; records.next(record); ++i) {
    CAPTURE(i);
    const data::Features features = data::parse_example(record, records.place());
    const auto list = [&](const char* name) { return std::get<std::vector<std::int64_t>>(features.at(name)); };
    if (list("is_real_example") != std::vector<std::int64_t>{1}) break;  // padding of the last batch
    REQUIRE(i < encoded.size());
    const auto ids = encoded.ids(i);
    std::vector<std::int64_t> padded(ids.begin(), ids.end()), mask(ids.size(), 1), types(ids.size(), 1);
    std::fill_n(types.begin(), encoded.first_length(i), 0);
    for (auto* feature : {&padded, &mask, &types}) feature->resize(128);
    REQUIRE(padded == list("input_ids"));
    REQUIRE(mask == list("input_mask"));
    REQUIRE(types == list("segment_ids"));
    REQUIRE(table.targets(task, labels, static_cast<std::size_t>(i)).at(0) == list("label_ids").at(0));
  }
  CHECK(i == encoded.size());
}
