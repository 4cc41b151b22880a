#include "bert/tasks/entity_scores.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "bert/tasks/numpy_sum.h"
#include "support/paths.h"

using namespace bertrand;
using namespace bertrand::tasks;

namespace {

using Tags = std::vector<std::string>;

/// The figures of seqeval 1.2.2's classification_report, to the last digit.
void check_figures(const ClassFigures& got, const ClassFigures& expected) {
  CHECK(got.precision == expected.precision);
  CHECK(got.recall == expected.recall);
  CHECK(got.f1 == expected.f1);
  CHECK(got.support == expected.support);
}

/// Of 400 sentences of 13 tags, a third of which are predicted as any.
EntityScores scores_of_random(const Tags& all) {
  std::uint64_t state = 1;
  const auto next = [&](std::uint64_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % n;
  };
  EntityCounter counter;
  for (int sentence = 0; sentence < 400; ++sentence) {
    Tags truth(next(12)), predicted;
    for (std::string& tag : truth) tag = all[next(13)];
    for (const std::string& tag : truth) predicted.push_back(next(3) ? tag : all[next(13)]);
    counter.add(truth, predicted);
  }
  return counter.scores();
}

}  // namespace

TEST_CASE("a tag that cannot stand where it stands begins an entity of its own") {
  const Tags tags = {"I-PER", "I-LOC", "B", "I-PER", "E-PER", "I-PER", "S-X", "E-X"};
  const std::vector<Entity> expected = {{"PER", 0, 0}, {"LOC", 1, 1}, {"_", 2, 2}, {"PER", 3, 4},
                                        {"PER", 5, 5}, {"X", 6, 6},   {"X", 7, 7}};
  CHECK(entities(tags) == expected);  // seqeval's get_entities
  CHECK(entities(Tags{}).empty());
  CHECK(entities(Tags{"O", "O"}).empty());
  CHECK(entities(Tags{"", "B-X"}) == std::vector<Entity>{{"X", 1, 1}});
  CHECK(entities(Tags{".", "N", "B-X"}) == std::vector<Entity>{{"_", 0, 1}, {"X", 2, 2}});  // N ends what nothing began
}

TEST_CASE("a type may hold hyphens") {
  CHECK(entities(Tags{"B-creative-work", "I-creative-work"}) == std::vector<Entity>{{"creative-work", 0, 1}});
}

TEST_CASE("pairs of tags that may not follow each other are counted and the most frequent one is named") {
  IllegalPairs pairs;
  CHECK(pairs.sum() == 0);
  pairs.add(std::vector<std::string>{"I-PER", "O", "I-LOC", "I-LOC"});
  pairs.add(std::vector<std::string>{"B-LOC", "I-PER"});  // what ended the sentence before does not count
  pairs.add(std::vector<std::string>{"I-LOC"});
  CHECK(pairs.sum() == 4);
  CHECK(pairs.most_frequent() == "O before I-LOC (2)");
  IllegalPairs steering;
  steering.add(std::vector<std::string>{"I-\x1B[2J" + std::string(1000, 'x')});
  CHECK(steering.most_frequent() == "O before I- [2J" + std::string(74, 'x') + " (1)");
}

TEST_CASE("an inside tag is illegal unless it continues its own type") {
  CHECK(is_illegal("O", "I-PER"));
  CHECK(is_illegal("B-LOC", "I-PER"));
  CHECK_FALSE(is_illegal("B-PER", "I-PER"));
  CHECK_FALSE(is_illegal("I-PER", "I-PER"));
  CHECK_FALSE(is_illegal("I-PER", "B-LOC"));
  CHECK_FALSE(is_illegal("I-PER", "O"));
}

TEST_CASE("the middle and the end of an entity are illegal unless they continue its type") {
  for (const std::string tag : {"M-PER", "E-PER"}) {
    CAPTURE(tag);
    for (const char* before : {"O", "B-LOC", "E-PER", "S-PER"}) CHECK(is_illegal(before, tag));
    for (const char* before : {"B-PER", "I-PER", "M-PER"}) CHECK_FALSE(is_illegal(before, tag));
  }
  CHECK_FALSE(is_illegal("O", "MISC"));
  CHECK_FALSE(is_illegal("O", "E"));
  CHECK_FALSE(is_illegal("O", "S-PER"));
}

TEST_CASE("random tags of every kind have seqeval's figures to the last digit") {
  const EntityScores scores = scores_of_random(
      {"O", "B-PER", "I-PER", "B-LOC", "I-LOC", "E-LOC", "S-ORG", "I-a-b", "B", "I", "E-PER", "O", "O"});
  check_figures(scores.types.at("LOC"), {0.6498855835240275, 0.6604651162790698, 0.6551326412918108, 430});
  check_figures(scores.types.at("ORG"), {0.6936416184971098, 0.6818181818181818, 0.6876790830945558, 176});
  check_figures(scores.types.at("PER"), {0.7041666666666667, 0.6855983772819473, 0.6947584789311408, 493});
  check_figures(scores.types.at("_"), {0.6408450704225352, 0.6546762589928058, 0.6476868327402135, 278});
  check_figures(scores.types.at("a-b"), {0.6329113924050633, 0.6060606060606061, 0.6191950464396284, 165});
  CHECK(scores.types.size() == 5);
  check_figures(scores.micro, {0.6684073107049608, 0.6640726329442282, 0.6662329212752114, 1542});
  check_figures(scores.macro, {0.6642900663030804, 0.657723708086522, 0.6608904164994699, 1542});
  check_figures(scores.weighted, {0.6687880685874125, 0.6640726329442282, 0.6663285386883858, 1542});
  CHECK(scores.accuracy == 0.7003727865796832);
}

TEST_CASE("the prefix of a tag is its first character, of however many bytes, as in seqeval") {
  CHECK(entities(Tags{"日本", "日", "名詞"}) == std::vector<Entity>{{"本", 0, 0}, {"_", 1, 1}, {"詞", 2, 2}});
  const EntityScores scores =
      scores_of_random({"O", "日本", "語本", "月-語", "B-é", "I-é", "名詞", "é-x", "O", "€€", "𝄞a", "B", "O"});
  check_figures(scores.types.at("_"), {0.6987951807228916, 0.7160493827160493, 0.7073170731707318, 162});
  check_figures(scores.types.at("a"), {0.6686746987951807, 0.6686746987951807, 0.6686746987951807, 166});
  check_figures(scores.types.at("x"), {0.6329113924050633, 0.6060606060606061, 0.6191950464396284, 165});
  check_figures(scores.types.at("é"), {0.6472602739726028, 0.6725978647686833, 0.6596858638743456, 281});
  check_figures(scores.types.at("€"), {0.6190476190476191, 0.6546762589928058, 0.6363636363636365, 139});
  check_figures(scores.types.at("本"), {0.6440677966101694, 0.6031746031746031, 0.6229508196721311, 315});
  check_figures(scores.types.at("詞"), {0.6049382716049383, 0.6242038216560509, 0.6144200626959249, 157});
  check_figures(scores.types.at("語"), {0.6369426751592356, 0.6289308176100629, 0.6329113924050632, 159});
  CHECK(scores.types.size() == 8);
  check_figures(scores.micro, {0.6448476992871031, 0.6444300518134715, 0.6446388079041141, 1544});
  check_figures(scores.macro, {0.6440797385397126, 0.6467960067217553, 0.6451898241770803, 1544});
  check_figures(scores.weighted, {0.6448792130714777, 0.6444300518134715, 0.6443686471190547, 1544});
  CHECK(scores.accuracy == 0.6985088536812675);
}

TEST_CASE("a tag without a type is of its file, not of its sentence, as in seqeval") {
  EntityFinder finder;
  CHECK(finder.next(Tags{"N", "B-X"}) == std::vector<Entity>{{"_", 0, 0}, {"X", 1, 1}});
  CHECK(finder.next(Tags{"N", "B-X"}) == std::vector<Entity>{{"_", -2, 0}, {"X", 1, 1}});
  const EntityScores scores =
      scores_of_random({"O", "N", "B-X", "I-X", "V", "日", "B", "E", "O", ".", "E-X", "S", "N"});
  check_figures(scores.types.at("X"), {0.7117903930131004, 0.6863157894736842, 0.6988210075026795, 475});
  check_figures(scores.types.at("_"), {0.5726795096322241, 0.5726795096322241, 0.5726795096322241, 571});
  check_figures(scores.micro, {0.6345966958211856, 0.624282982791587, 0.6293975903614458, 1046});
  check_figures(scores.weighted, {0.6358512778979185, 0.624282982791587, 0.6299617385886929, 1046});
}

TEST_CASE("without an entity every figure is 0") {
  EntityCounter counter;
  CHECK(counter.scores().accuracy == 0);
  counter.add(Tags{"O"}, Tags{"O"});
  const EntityScores scores = counter.scores();
  check_figures(scores.micro, {});
  check_figures(scores.macro, {});
  CHECK(scores.accuracy == 1);
}

TEST_CASE("predictions for WNUT-17 have the figures that seqeval gave them") {
  const std::string folder = paths::shared + "/data/scoring/";
  if (!std::filesystem::exists(folder)) {
    MESSAGE("SKIPPED: no data in " << folder);
    return;
  }
  EntityCounter counter;
  Tags truth, predicted;
  std::ifstream file(folder + "tokens.conll");
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    std::string word, gold, guess;
    if (fields >> word >> gold >> guess) {
      truth.push_back(gold), predicted.push_back(guess);
      continue;
    }
    counter.add(truth, predicted);
    truth.clear(), predicted.clear();
  }
  counter.add(truth, predicted);
  const EntityScores scores = counter.scores();
  std::ifstream expected_file(folder + "tokens.json");
  const auto expected = nlohmann::json::parse(expected_file);
  CHECK(scores.accuracy == expected.at("accuracy").get<double>());
  const auto check_against = [](const ClassFigures& got, const nlohmann::json& of) {
    check_figures(got, {of.at("precision"), of.at("recall"), of.at("f1-score"),
                        static_cast<std::int64_t>(of.at("support").get<double>())});
  };
  for (const auto& [type, figures] : scores.types) check_against(figures, expected.at("types").at(type));
  check_against(scores.micro, expected.at("types").at("micro avg"));
  check_against(scores.macro, expected.at("types").at("macro avg"));
  check_against(scores.weighted, expected.at("types").at("weighted avg"));
}

TEST_CASE("a sum has the rounding of numpy's, whose order changes with the length") {
  // 1 is lost beside 1e16.
  const auto sum = [](std::size_t count, const std::map<std::size_t, double>& values) {
    std::vector<double> x(count);
    for (const auto& [place, value] : values) x[place] = value;
    return numpy_sum(x);
  };
  CHECK(sum(7, {{0, 1e16}, {1, 1}, {2, -1e16}, {3, 1}}) == 1);  // one after the other
  CHECK(sum(8, {{0, 1e16}, {1, 1}, {2, -1e16}, {3, 1}}) == 0);  // in pairs
  CHECK(sum(16, {{0, 1e16}, {1, 1}, {8, -1e16}}) == 1);         // in eight parts
  CHECK(sum(17, {{0, 1e16}, {1, 1}, {8, -1e16}, {16, 1}}) == 2);
  CHECK(sum(128, {{0, 1e16}, {1, 1}, {64, -1e16}}) == 1);
  CHECK(sum(136, {{0, 1e16}, {1, 1}, {64, -1e16}}) == 0);  // in halves, of 64 and 72
  CHECK(numpy_sum(std::vector<double>(1003, 1)) == 1003);
}
