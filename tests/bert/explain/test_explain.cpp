// What a model shows of itself against PyTorch's figures, against differences, and by hand.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "bert/explain/explanation.h"
#include "bert/network/golden.h"
#include "support/program.h"
#include "support/refusal.h"
#include "support/small_heads.h"

using namespace bertrand;
using golden::Case;

namespace {

/// The golden models have 120 tokens and no vocabulary.
std::string numbered_vocabulary() {
  std::string text = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
  for (int id = 5; id < 120; ++id) text += fmt::format("{}w{}\n", id % 2 == 0 ? "##" : "", id);
  return text;
}

/// A copy of a golden model, with a vocabulary.
struct Directory : support::TemporaryDirectory {
  explicit Directory(const Case& golden) {
    for (const char* name : {"config.json", "model.safetensors"})
      std::filesystem::copy_file(golden.directory / name, std::filesystem::path(*this / name));
    support::write_text(*this / "vocab.txt", numbered_vocabulary());
  }
};

explain::Model open(const Directory& directory, DType dtype = DType::f64) {
  return explain::Model(directory / ".", golden::cpu(), dtype);
}

std::vector<double> head(const std::vector<double>& all, std::size_t count) {
  return {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count)};
}

/// The first six shares of a row.
std::vector<double> row(const explain::Look& look, std::size_t head, std::size_t row) {
  const auto from = look.attention[head].begin() + static_cast<std::ptrdiff_t>(row * look.tokens.size());
  return {from, from + 6};
}

double sum(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

}  // namespace

// The figures are those of torch 2.15 and transformers 5.23, in double: BertForSequenceClassification.from_pretrained(
// golden_model/classification, attn_implementation="eager").double().eval(), called with inputs_embeds (the rows of
// word_embeddings, which want a gradient), token_type_ids and output_attentions=True, on the second sequence of
// golden.json. Attention is attentions[layer][0, head, row], gradient × input (autograd.grad(logits[0, c],
// inputs_embeds) * inputs_embeds).sum(-1), [CLS] hidden_states[-1][0, 0].
TEST_CASE("attention, gradient × input and rows of [CLS] are those of PyTorch") {
  if (!golden::present("classification")) return;
  const Case golden("classification");
  const Directory directory(golden);
  const explain::Model model = open(directory);
  const bert::Sequence sequence = golden.sequences()[1];
  const explain::Look look = model.look(sequence);
  REQUIRE(look.attention.size() == 2 * 4);
  CHECK(golden::greatest_difference(
            row(look, 0, 0), {0.064010552, 0.131595005, 0.379893492, 0.073975126, 0.06994287, 0.052875481}) < 1e-7);
  CHECK(golden::greatest_difference(
            row(look, 0, 3), {0.036899963, 0.215920551, 0.013995322, 0.159736076, 0.012355925, 0.055840644}) < 1e-7);
  CHECK(golden::greatest_difference(
            row(look, 7, 0), {0.106012465, 0.078450313, 0.241461414, 0.135222729, 0.145265015, 0.057063756}) < 1e-7);
  CHECK(golden::greatest_difference(
            row(look, 7, 3), {0.354569563, 0.031926047, 0.078457807, 0.081617594, 0.116157125, 0.113447893}) < 1e-7);
  CHECK(golden::greatest_difference(look.logits, {-0.8218960550743304, -0.4811362232961736, -0.2597796171056479}) <
        1e-9);
  REQUIRE(look.attributions.size() == 3);
  CHECK(look.attributions[0].output == 2);  // the largest logit first
  CHECK(golden::greatest_difference(look.attributions[0].tokens,
                                    {-0.155485924, -0.007503577, 0.014260473, -0.064923665, 0.039619499, 0.032424081,
                                     -0.016102115, 0.006521525, -0.012659806, 0.042466607}) < 1e-8);
  CHECK(look.attributions[1].output == 1);
  CHECK(golden::greatest_difference(head(look.attributions[1].tokens, 4),
                                    {0.412053069, 0.004718325, 0.049298679, -0.033580899}) < 1e-8);
  const std::vector<float> first = model.first_rows(golden.sequences());
  REQUIRE(first.size() == golden.sequences().size() * 32);
  CHECK(golden::greatest_difference({first.begin() + 32, first.begin() + 37},
                                    {-0.5945196, -0.2528357, -0.8603519, -1.1094894, 1.6741155}) < 1e-6);
}

TEST_CASE("gradient × input is what the output changes by when a word's vector grows") {
  if (!golden::present("classification")) return;
  const Case golden("classification");
  const bert::Sequence sequence = golden.sequences()[1];
  const auto grown = [&](double factor) {
    const Directory directory(golden);
    std::string bytes = support::read_text(directory / "model.safetensors");
    std::uint64_t length = 0;
    std::memcpy(&length, bytes.data(), sizeof length);
    const auto header = nlohmann::json::parse(bytes.substr(8, length));
    const auto& table = header.at("bert.embeddings.word_embeddings.weight");
    REQUIRE(table.at("dtype") == "F32");
    const std::size_t from = 8 + length + table.at("data_offsets").at(0).get<std::size_t>() +
                             static_cast<std::size_t>(sequence.token_ids[3]) * 32 * sizeof(float);
    for (std::size_t i = 0; i < 32; ++i) {
      float value = 0;
      std::memcpy(&value, bytes.data() + from + i * sizeof value, sizeof value);
      value = static_cast<float>(value * factor);
      std::memcpy(bytes.data() + from + i * sizeof value, &value, sizeof value);
    }
    support::write_text(directory / "model.safetensors", bytes);
    return open(directory).look(sequence);
  };
  const explain::Look less = grown(1 - 1e-2), more = grown(1 + 1e-2), as_it_is = grown(1);
  for (const explain::Look::Attribution& one : as_it_is.attributions) {
    const double difference = (more.logits[one.output] - less.logits[one.output]) / 2e-2;
    CHECK(one.tokens[3] == doctest::Approx(difference).scale(0).epsilon(1e-3));
  }
}

TEST_CASE("the numbers of a page are thousandths, entropies and words of their pieces") {
  if (!golden::present("classification")) return;
  const Case golden("classification");
  const Directory directory(golden);
  const explain::Model model = open(directory, DType::f32);
  const std::vector<explain::Text> texts = {{.text = "w5w6 w7"}, {.text = "w9"}};
  const explain::Explanation explanation(model, texts, texts);
  const io::Json json = explanation.json(3);
  CHECK(json["texts"][0]["tokens"] == io::Json({"[CLS]", "w5", "##w6", "w7", "[SEP]"}));
  CHECK(json["texts"][0]["words"] == io::Json({{0, 1}, {1, 3}, {3, 4}, {4, 5}}));
  CHECK(json["texts"][0]["shown"] == 3);
  CHECK(json["texts"][0]["attention"][1][3].size() == 9);
  CHECK(!json.contains("map"));  // of two points
  const explain::Look look = model.look(model.encode("w5w6 w7"));
  CHECK(json["texts"][0]["attention"][0][0][4] == std::lround(1000 * look.attention[0][5 + 1]));
  double bits = 0, rows = 0;
  for (const explain::Text& text : texts) {
    const explain::Look one = model.look(model.encode(text.text));
    for (const float p : one.attention[7]) bits -= p * std::log2(p);
    rows += static_cast<double>(one.tokens.size());
  }
  CHECK(json["entropy"][1][3].get<double>() == doctest::Approx(bits / rows).scale(0).epsilon(1e-3));
}

TEST_CASE("a row of a table may be empty, and is shown as the model sees it") {
  if (!golden::present("classification")) return;
  const Case golden("classification");
  const Directory directory(golden);
  const explain::Model model = open(directory, DType::f32);
  const std::vector<explain::Text> texts = {{.text = " "}, {.text = "", .pair = "w5"}, {.text = "w9"}};
  const io::Json json = explain::Explanation(model, texts, texts).json(8);
  CHECK(json["texts"][0]["tokens"] == io::Json({"[CLS]", "[SEP]"}));
  CHECK(json["texts"][1]["tokens"] == io::Json({"[CLS]", "[SEP]", "w5", "[SEP]"}));
  CHECK(json["map"]["x"].size() == 3);
}

TEST_CASE("outputs have a probability where one of several labels is right, and the likeliest comes first") {
  const support::TemporaryDirectory directory;
  const auto outputs = [&](const std::vector<std::string>& labels, const std::string& type) {
    support::write_small_head<bert::ForSequenceClassification>(
        directory / "model", {.architecture = "BertForSequenceClassification", .labels = labels, .problem_type = type},
        static_cast<Dim>(labels.size()));
    const explain::Model model(directory / "model", golden::cpu());
    return explain::Explanation(model, {{.text = "red fish"}}, {}).json(8)["texts"][0]["outputs"];
  };
  const io::Json two = outputs({"a", "b"}, "single_label_classification");
  REQUIRE(two.size() == 2);
  const double first = two[0]["probability"], second = two[1]["probability"];
  CHECK(first > second);
  CHECK(first + second == doctest::Approx(1));
  CHECK(std::log(first / second) ==
        doctest::Approx(two[0]["logit"].get<double>() - two[1]["logit"].get<double>()).epsilon(1e-2));
  CHECK(outputs({"a", "b", "c", "d", "e"}, "").size() == 4);  // the others are not differentiated
  for (const auto& [labels, type] : {std::pair(std::vector<std::string>{"a", "b"}, "multi_label_classification"),
                                     {{"a"}, "regression"},
                                     {{"a"}, ""}})
    CHECK_FALSE(outputs(labels, type)[0].contains("probability"));
}

TEST_CASE("the map and the projector have a line for each row, with its pair, and none if there are too few") {
  const support::TemporaryDirectory directory;
  support::write_small_classifier(directory / "model");
  const explain::Model model(directory / "model", golden::cpu());
  std::vector<explain::Text> rows = {{.text = "a\tb\nc\rd", .pair = "red", .label = "x\ty"},
                                     {.text = "", .label = "b", .prediction = "c"}};
  const auto files = [&] {
    const explain::Explanation explanation(model, {}, rows);
    explanation.write_projector(io::Files::system(), directory / "projector");
    return explanation.json(8);
  };
  const auto text = [&](const char* name) { return support::read_text(directory / "projector" / name); };
  CHECK_FALSE(files().contains("map"));
  CHECK(text("metadata.tsv") == "text\tlabel\tprediction\n");
  CHECK(text("embeddings.tsv").empty());
  rows.push_back({.text = "fish", .label = "c", .prediction = "c"});
  CHECK(files()["map"]["text"] == io::Json({"a\tb\nc\rd | red", "", "fish"}));
  CHECK(text("metadata.tsv") == "text\tlabel\tprediction\na b c d\tx y\t-\n-\tb\tc\nfish\tc\tc\n");
  CHECK(std::ranges::count(text("embeddings.tsv"), '\n') == 3);
}

TEST_CASE("a text or a pair that a model has no types of tokens or no positions for is refused") {
  const support::TemporaryDirectory directory;
  const std::string model = directory / "model";
  const auto refusal = [&](Dim types, Dim positions, const std::optional<std::string>& pair) {
    support::write_small_head<bert::ForSequenceClassification>(
        model,
        {.architecture = "BertForSequenceClassification", .labels = {"a", "b"}, .positions = positions, .types = types},
        2);
    const explain::Model opened(model, golden::cpu());
    return support::refusal(Failure::model, [&] {
      const bert::Sequence sequence = opened.encode("red", pair);
      CHECK(std::ranges::count(sequence.token_ids, 3) == (pair ? 2 : 1));  // [SEP]
      CHECK(opened.look(sequence).tokens.size() == (pair ? 5 : 3));
    });
  };
  CHECK(refusal(1, 3, {}) == "");
  CHECK(refusal(2, 5, "fish") == "");
  CHECK(refusal(1, 24, "fish") == model + ": type_vocab_size: expected 2 for pairs of texts, got 1");
  CHECK(refusal(2, 4, "fish") == model + ": max_position_embeddings: expected at least 5 for pairs of texts, got 4");
  CHECK(refusal(2, 2, {}) == model + ": max_position_embeddings: expected at least 3 for texts, got 2");
}

TEST_CASE("of many rows as many are mapped as the page says, evenly spread") {
  if (!golden::present("classification")) return;
  const Case golden("classification");
  const Directory directory(golden);
  const explain::Model model = open(directory, DType::f32);
  std::vector<explain::Text> rows;
  for (std::size_t i = 0; i < 2 * explain::kRows; ++i)
    rows.push_back({.text = fmt::format("w{}", 5 + 2 * (i % 50)), .label = fmt::format("{}", i)});
  const io::Json json = explain::Explanation(model, {rows[0]}, rows).json(8);
  CHECK(json["map"]["x"].size() == explain::kRows);
  CHECK(json["map"]["label"][1] == "2");
  CHECK(json["bounds"]["rows_given"] == 2 * explain::kRows);
  CHECK(json["map"]["near"][0][0][1] == 1.0);  // the same text again
}

TEST_CASE("a plane has the directions in which points differ most") {
  // Points of four dimensions that differ along (3, 4, 0, 0) / 5 most and along (0, 0, 1, 0) second.
  std::vector<float> points;
  for (int i = -5; i <= 5; ++i) {
    const auto along = static_cast<float>(i), across = static_cast<float>(i * i % 3 - 1);
    points.insert(points.end(), {7 + 3 * along, 4 * along, across, 2});
  }
  const explain::Plane plane = explain::principal_plane(points, 4);
  REQUIRE(plane.x.size() == 11);
  double mean = 0;
  for (int i = -5; i <= 5; ++i) mean += (i * i % 3 - 1) / 11.0;
  double across = 0;
  for (int i = -5; i <= 5; ++i) {
    CHECK(plane.x[static_cast<std::size_t>(i + 5)] == doctest::Approx(5.0 * i));
    CHECK(plane.y[static_cast<std::size_t>(i + 5)] == doctest::Approx(i * i % 3 - 1 - mean));
    across += std::pow(i * i % 3 - 1 - mean, 2);
  }
  const double along = 25 * 110;
  CHECK(plane.shares[0] == doctest::Approx(along / (along + across)));
  CHECK(plane.shares[1] == doctest::Approx(across / (along + across)));
  CHECK(sum(plane.x) == doctest::Approx(0));
}

// numpy 2: X = numpy.array([[(i * 7 + j * 3) % 11 + (i * j) % 5 for j in range(6)] for i in range(9)], float); X -=
// X.mean(0); U, S, V = numpy.linalg.svd(X); (X @ V[0]), (X @ V[1]), S**2 / (S**2).sum(); V's rows with the sign of the
// number that is largest without it.
TEST_CASE("a plane is that of numpy") {
  std::vector<float> points;
  for (int i = 0; i < 9; ++i)
    for (int j = 0; j < 6; ++j) points.push_back(static_cast<float>((i * 7 + j * 3) % 11 + i * j % 5));
  const explain::Plane plane = explain::principal_plane(points, 6);
  CHECK(golden::greatest_difference(plane.x, {-2.874136204, 6.309298225, -6.237734302, 4.244247841, -1.246218832,
                                              -7.779805573, 8.711383710, -1.807444438, 0.680409574}) < 1e-6);
  CHECK(golden::greatest_difference(plane.y, {-7.701034714, 4.513568389, 2.481954765, -5.592586408, 6.072299252,
                                              -0.329300125, 0.939076929, 5.750759022, -6.134737111}) < 1e-5);
  CHECK(golden::greatest_difference({plane.shares.begin(), plane.shares.end()}, {0.353870886428, 0.323742807798}) <
        1e-9);
}

TEST_CASE("points that do not differ have a plane of zeros, and neighbours by their angle") {
  const std::vector<float> same(12, 2);
  CHECK(explain::principal_plane(same, 4).x == std::vector<double>(3, 0));
  CHECK(explain::principal_plane(same, 4).shares[0] == 0);
  const auto near = explain::nearest(std::vector<float>{1, 0, 2, 2, 0, 3, -1, 0}, 2, 2);
  REQUIRE(near[0].size() == 2);
  CHECK(near[0][0].point == 1);
  CHECK(near[0][0].cosine == doctest::Approx(std::sqrt(0.5)));
  CHECK(near[0][1].point == 2);
  CHECK(near[3][0].point == 2);
}
