#include <doctest/doctest.h>

#include "support/program.h"

using namespace bertrand;
using support::run_program;
using support::write_text;

namespace {

const std::string kData = paths::shared + "/data/";

bool have_data() {
  if (std::filesystem::exists(kData + "scoring")) return true;
  MESSAGE("SKIPPED: no data in " << kData);
  return false;
}

constexpr const char* kQuestions =
    R"({"data": [{"paragraphs": [{"context": "c", "qas": [{"id": "1", "question": "q", "answers":
    [{"text": "the cat", "answer_start": 0}]}, {"id": "2", "question": "q", "answers": []}]}]}]})";

/// evaluate ranking of files with these lines, which lie in `directory`.
support::Outcome rank(const support::TemporaryDirectory& directory, const std::string& qrels, const std::string& run) {
  write_text(directory / "qrels", qrels);
  write_text(directory / "run", run);
  const support::Outcome outcome =
      run_program("evaluate", {"ranking", "--qrels", directory / "qrels", "--run", directory / "run"});
  CHECK(outcome.code == 0);
  return outcome;
}

/// What evaluate says against these files.
std::string refusal(const std::vector<std::string>& arguments, int code = 3) {
  const support::Outcome outcome = run_program("evaluate", arguments);
  CHECK(outcome.code == code);
  CHECK(outcome.out.empty());
  return outcome.error;
}

}  // namespace

TEST_CASE("a ranking has the figures of dl4marco-bert") {
  if (!have_data()) return;
  const support::Outcome outcome = run_program("evaluate", {"ranking", "--qrels", kData + "scoring/ranking_qrels.tsv",
                                                            "--run", kData + "scoring/ranking_run.tsv", "--json"});
  REQUIRE(outcome.code == 0);
  const auto figures = nlohmann::json::parse(outcome.out),
             expected = nlohmann::json::parse(support::read_text(kData + "scoring/ranking.json"));
  CHECK(figures.at("map") == expected.at("MAP"));
  CHECK(figures.at("rprec") == expected.at("RPrec"));
  CHECK(figures.at("mrr") == expected.at("MRR"));
  CHECK(figures.at("mrr_at_10") == expected.at("MRR@10"));
  CHECK(figures.at("ndcg") == expected.at("NDCG"));
  CHECK(figures.at("queries") == 300);
  CHECK(outcome.error == "warning: queries without a relevant passage, which score 0: 5 of 300\n");
}

TEST_CASE("a ranking's lines may come in any order of their ranks") {
  const support::TemporaryDirectory directory;
  const support::Outcome outcome = rank(directory, "1\t0\ta\t1\n1 0 b 0\n", "1\tb\t2\n1\ta\t1\n\n");
  CHECK(outcome.out == "map = 1\nmrr = 1\nmrr_at_10 = 1\nndcg = 1\nqueries = 1\nrprec = 1\n");
}

TEST_CASE("a passage counts at its rank, also if the ranks before it are left out") {
  const support::TemporaryDirectory directory;  // as ms_marco_eval.py: (1 / 5 + 0 + 0) / 3
  const std::string run = "1\tc\t3\n1\ta\t5\n2\tb\t20\n3\td\t1000\n";
  const std::string out = rank(directory, "1\t0\ta\t1\n2\t0\tb\t1\n", run).out;
  CHECK(out.find("\nmrr_at_10 = 0.066666666666666666\n") != std::string::npos);
}

TEST_CASE("a passage that comes again for its query is named in a warning") {
  const support::TemporaryDirectory directory;
  const support::Outcome outcome = rank(directory, "1\t0\ta\t1\n", "1\ta\t1\n1\ta\t2\n1\tb\t3\n1\tb\t4\n");
  CHECK(outcome.out == "map = 1\nmrr = 1\nmrr_at_10 = 1\nndcg = 1.6309297535714575\nqueries = 1\nrprec = 1\n");
  CHECK(outcome.error == "warning: " + (directory / "run").string() +
                             ": passages that come again for their query: 2, the first a of query 1; ndcg counts each "
                             "of them, as metrics.py does\n");
}

TEST_CASE("a byte order mark is no part of the first query's id") {
  const support::TemporaryDirectory directory;
  const std::string mark = "\xEF\xBB\xBF";
  const support::Outcome outcome = rank(directory, mark + "1\t0\ta\t1\n", mark + "1\tb\t1\n1\ta\t2\n");
  CHECK(outcome.error.empty());
  CHECK(outcome.out.starts_with("map = 0.5\n"));
  CHECK(outcome.out.find("\nqueries = 1\n") != std::string::npos);
}

TEST_CASE("tagged words have seqeval's figures with 17 digits") {
  const support::TemporaryDirectory directory;
  write_text(directory / "tags", "-DOCSTART- O O\n\nJohn B-PER B-PER\r\nran O I-LOC\n\n\na O O\n");
  const support::Outcome outcome = run_program("evaluate", {"tokens", directory / "tags"});
  CHECK(outcome.code == 0);
  CHECK(outcome.out.starts_with("LOC_f1 = 0\n"));
  CHECK(outcome.out.find("\naccuracy = 0.66666666666666663\n") != std::string::npos);
  CHECK(outcome.out.find("\nf1 = 0.66666666666666663\nillegal_tags = 1\n") != std::string::npos);
  CHECK(outcome.error ==
        "warning: predicted tags that continue no entity of their type: 1, most often B-PER before I-LOC (1)\n");
}

TEST_CASE("tagged words are shown in seqeval's table, or as JSON in which what is counted is a whole number") {
  const support::TemporaryDirectory directory;
  write_text(directory / "tags", "a B-PER B-PER\nb O I-LOC\n");
  const support::Outcome outcome = run_program("evaluate", {"tokens", directory / "tags", "--table"});
  CHECK(outcome.code == 0);
  CHECK(outcome.out ==
        "              precision    recall  f1-score   support\n\n"
        "         LOC     0.0000    0.0000    0.0000         0\n"
        "         PER     1.0000    1.0000    1.0000         1\n\n"
        "   micro avg     0.5000    1.0000    0.6667         1\n"
        "   macro avg     0.5000    0.5000    0.5000         1\n"
        "weighted avg     1.0000    1.0000    1.0000         1\n");
  CHECK(outcome.error.starts_with("warning: predicted tags that continue no entity"));
  const std::string json = run_program("evaluate", {"tokens", directory / "tags", "--json"}).out;
  CHECK(json.starts_with("{\"LOC_f1\": 0.0, \"LOC_precision\": 0.0, \"LOC_recall\": 0.0, \"LOC_support\": 0, "));
  CHECK(json.find("\"illegal_tags\": 1, ") != std::string::npos);
  CHECK(json.ends_with("\"weighted_support\": 1, \"words\": 2}\n"));
  refusal({"tokens", directory / "tags", "--table", "--json"}, 2);
  write_text(directory / "data", kQuestions);
  write_text(directory / "predictions", R"({"1": "A cat.", "2": ""})");
  CHECK(run_program("evaluate",
                    {"squad2", "--data", directory / "data", "--predictions", directory / "predictions", "--json"})
            .out.find("\"total\": 2") != std::string::npos);
  CHECK(rank(directory, "1\t0\ta\t1\n", "1\ta\t1\n").out.find("queries = 1\n") != std::string::npos);
}

TEST_CASE("a report of entities is no file of tagged words, as one of labels is none") {
  const support::TemporaryDirectory directory;
  write_text(directory / "report", "entity\tprecision\trecall\tf1\tsupport\nLOC\t0.5\t0.5\t0.5\t2\n");
  CHECK(refusal({"tokens", directory / "report"}) ==
        "error: " + (directory / "report").string() +
            ":1: columns: expected word, true tag and predicted tag, got those of eval_report.tsv\n");
}

TEST_CASE("labels of words that are no entities are warned of, and have the figures of their task") {
  const support::TemporaryDirectory directory;
  write_text(directory / "predictions.tsv",
             "sentence\tword\tprediction\tprobability\tlabel\n"
             "0\ta\tNN\t.9\tNN\n0\tb\tDT\t.8\tNN\n1\tc\tO\t.7\tO\n");
  const auto run = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"tokens", directory / "predictions.tsv"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_program("evaluate", arguments);
  };
  CHECK(run({}).error ==
        "warning: true tags: expected O, or those of entities as B-PER, got \"NN\"; hint: --task pos, punct or tokens "
        "has the figures of other labels\n");
  write_text(directory / "letters", "a P P\nb O O\n");
  CHECK(run_program("evaluate", {"tokens", directory / "letters"}).error.find("as B-PER, got \"P\"; ") !=
        std::string::npos);
  write_text(directory / "letters", "a B B\nb I I\nc O O\n");
  CHECK(run_program("evaluate", {"tokens", directory / "letters"}).error.empty());
  const support::Outcome pos = run({"--task", "pos"});
  CHECK(pos.error.empty());
  CHECK(pos.out == "accuracy = 0.66666666666666663\nmacro_f1 = 0.55555555555555547\nwords = 3\n");
  CHECK(run({"--task", "punct", "--json"}).out ==
        R"({"accuracy": 0.6666666666666666, "f1": 0.5, "precision": 0.5, "recall": 0.5, "words": 3})"
        "\n");
  CHECK(run({"--task", "tokens", "--table"})
            .out.starts_with("label\tprecision\trecall\tf1\tsupport\nDT\t0.0000\t0.0000\t0.0000\t0\n"));
  write_text(directory / "predictions.tsv", "id\tprediction\tprobability_a\tlabel\n0\ta\t1\ta\n");
  CHECK(refusal({"tokens", directory / "predictions.tsv"}) ==
        "error: " + (directory / "predictions.tsv").string() +
            ":1: columns: expected word, true tag and predicted tag, got those of predictions.tsv of texts; hint: "
            "evaluate classes, or evaluate scores for numbers\n");
}

TEST_CASE("an empty tag does not make another column the tag, and a rank far beyond the others is refused") {
  const support::TemporaryDirectory directory;
  const std::string tags = directory / "tags", qrels = directory / "qrels", run = directory / "run";
  for (const char* line : {"w\tNN\tO\t\n", "w\tNN\t\tB-PER\n", "w\tNN\tO\t \r\n"}) {
    write_text(tags, std::string("v\tNN\tO\tO\n\t\n\n") + line);
    CHECK(refusal({"tokens", tags}) ==
          "error: " + tags + ":4: columns: expected a word or a tag in each, got an empty one\n");
  }
  write_text(tags, "# sent_id = 1\nv O O\nw NN O O\n");
  CHECK(refusal({"tokens", tags}) == "error: " + tags + ":3: columns: expected 3 as in line 2, got 4\n");
  write_text(tags, "v\tO\tO\nw O O\n");
  CHECK(refusal({"tokens", tags}) ==
        "error: " + tags + ":2: columns: expected TAB between them as in line 1, got spaces\n");
  write_text(qrels, "q 0 p 1\n");
  for (const char* rank : {"1001", "9000000000000000000"}) {
    write_text(run, std::string("q x 1\nq p ") + rank + "\n");
    CHECK(refusal({"ranking", "--qrels", qrels, "--run", run}) ==
          "error: " + run + ": query q: rank: expected at most 1000, or the one after the one before, got " + rank +
              "\n");
  }
  write_text(run, "q x 1\nq p 1000\n");
  CHECK(run_program("evaluate", {"ranking", "--qrels", qrels, "--run", run}).out.find("mrr = 0.001\n") !=
        std::string::npos);
}

TEST_CASE("the predictions of finetune are scored as words with their tags") {
  const support::TemporaryDirectory directory;
  const std::string expected =
      run_program("evaluate",
                  {"tokens", (write_text(directory / "tags", "a B-X B-X\nb I-X O\n\n# O B-X\n"), directory / "tags")})
          .out;
  CHECK(expected.find("\nwords = 3\n") != std::string::npos);
  write_text(directory / "predictions.tsv",
             "sentence\tword\tprediction\tprobability\tlabel\n"
             "0\ta\tB-X\t.9\tB-X\n0\tb\tO\t.8\tI-X\n1\t#\tB-X\t.7\tO\n");
  CHECK(run_program("evaluate", {"tokens", directory / "predictions.tsv"}).out == expected);
  write_text(directory / "tags", "# sent_id = 1\na B-X B-X\nb I-X O\n\n# text = c\n# O B-X\n");
  CHECK(run_program("evaluate", {"tokens", directory / "tags"}).out == expected);
  write_text(directory / "tags", "a\tB-X \t B-X\nb\tI-X\t \tO\n\n#\tO\tB-X\n");  // spaces beside TAB
  CHECK(run_program("evaluate", {"tokens", directory / "tags"}).out == expected);
  write_text(directory / "predictions.tsv", "sentence\tword\tprediction\tprobability\n0\ta\tB-X\t.9\n");
  CHECK(run_program("evaluate", {"tokens", directory / "predictions.tsv"}).error ==
        "error: " + (directory / "predictions.tsv").string() + ":1: columns: expected one named label, got none\n");
}

TEST_CASE("an entity type that is called as a mean leaves the mean as it is") {
  const support::TemporaryDirectory directory;
  const auto figures_of = [&](const std::string& first, const std::string& second, const std::string& third) {
    const auto tag = [](const std::string& type) { return "B-" + type; };
    write_text(directory / "tags",
               "a " + tag(first) + " " + tag(first) + "\nb O O\n\nc " + tag(second) + " O\nd " + tag(third) + " O\n");
    const support::Outcome outcome = run_program("evaluate", {"tokens", directory / "tags", "--json"});
    REQUIRE(outcome.code == 0);
    return nlohmann::json::parse(outcome.out);
  };
  const auto usual = figures_of("PER", "LOC", "ORG"), odd = figures_of("macro", "weighted", "type_macro");
  CHECK(usual.at("macro_f1") == doctest::Approx(1.0 / 3));
  CHECK(usual.at("weighted_recall") == doctest::Approx(1.0 / 3));
  CHECK(odd.size() == usual.size());
  for (const auto& [name, value] : usual.items()) {
    CAPTURE(name);
    if (name.starts_with("PER_")) CHECK(odd.at("type_macro_" + name.substr(4)) == value);
    else if (name.starts_with("LOC_")) CHECK(odd.at("type_weighted_" + name.substr(4)) == value);
    else if (name.starts_with("ORG_")) CHECK(odd.at("type_type_macro_" + name.substr(4)) == value);
    else CHECK(odd.at(name) == value);
  }
}

TEST_CASE("what is no UTF-8 in tagged words is dropped and reported with its first place, and in tags refused") {
  const support::TemporaryDirectory directory;
  write_text(directory / "tags",
             "a O O\n\xA0\nb\xFF B-X B-X\n\xC3"
             "c O O\n");
  const support::Outcome outcome = run_program("evaluate", {"tokens", directory / "tags"});
  CHECK(outcome.code == 0);
  CHECK(outcome.out.starts_with("X_f1 = 1\n"));
  CHECK(outcome.error == "warning: " + (directory / "tags").string() +
                             ":2: text: dropped 3 bytes that are not UTF-8, the first one in column 1; hint: iconv "
                             "turns other encodings into UTF-8\n");
  for (const std::string tags : {"a O O\nb B-caf\xE9 O\n", "a O O\nb O B-caf\xE8\n"}) {
    write_text(directory / "tags", tags);
    const support::Outcome refused = run_program("evaluate", {"tokens", directory / "tags"});
    CHECK(refused.code == 3);
    CHECK(refused.error == "error: " + (directory / "tags").string() +
                               ":2: label: expected UTF-8, got other bytes; hint: iconv turns other encodings into "
                               "UTF-8\n");
  }
}

TEST_CASE("words and tags that are called as columns of finetune's files are words and tags") {
  const support::TemporaryDirectory directory;
  for (const std::string first : {"sentence O O", "label O O", "a O prediction", "a O support"}) {
    CAPTURE(first);
    write_text(directory / "tags", first + "\nsentence O prediction\nlabel O support\n");
    const support::Outcome outcome = run_program("evaluate", {"tokens", directory / "tags"});
    CHECK(outcome.code == 0);
    CHECK(outcome.out.find("\nwords = 3\n") != std::string::npos);
  }
}

TEST_CASE("answers have the official scores and missing ones are counted") {
  const support::TemporaryDirectory directory;
  write_text(directory / "data", kQuestions);
  write_text(directory / "predictions", R"({"1": "A cat."})");
  const support::Outcome outcome =
      run_program("evaluate", {"squad2", "--data", directory / "data", "--predictions", directory / "predictions"});
  CHECK(outcome.code == 0);
  CHECK(outcome.out.find("\nexact = 100\nf1 = 100\n") != std::string::npos);
  CHECK(outcome.error == "warning: questions without a prediction: 1, the first 2\n");
}

TEST_CASE("an id or a tag that would end a line or steer a terminal does so neither in warnings nor in figures") {
  const support::TemporaryDirectory directory;
  write_text(directory / "data", R"({"data": [{"paragraphs": [{"context": "c", "qas": [{"id": "x\n\u001b[31m",
      "question": "q", "answers": [{"text": "c", "answer_start": 0}]}]}]}]})");
  write_text(directory / "predictions", "{}");
  const support::Outcome answers =
      run_program("evaluate", {"squad", "--data", directory / "data", "--predictions", directory / "predictions"});
  CHECK(answers.error == "warning: questions without a prediction: 1, the first x  [31m\n");
  write_text(directory / "tags", "a B-\x1b[31mX B-\x1b[31mX\n");
  const support::Outcome tokens = run_program("evaluate", {"tokens", directory / "tags"});
  CHECK(tokens.code == 0);
  CHECK(tokens.out.starts_with(" [31mX_f1 = 1\n"));
}

TEST_CASE("files that evaluate cannot score are refused in a line with their place") {
  const support::TemporaryDirectory directory;
  const std::string data = directory / "data", bad = directory / "bad";
  write_text(data, kQuestions);
  const auto squad = [&](const std::string& predictions) {
    write_text(bad, predictions);
    return refusal({"squad", "--data", data, "--predictions", bad});
  };
  CHECK(squad(R"({"1": ["x"]})") == "error: " + bad + ": 1: expected a text, got [\"x\"]\n");
  CHECK(squad(R"({"1": "x", "1": "y"})") == "error: " + bad + ": \"1\": expected once, got it twice\n");
  CHECK(squad(R"({"1": "x")") ==
        "error: " + bad + ": expected JSON, got a syntax error at byte 10: unexpected end of input\n");
  CHECK(squad(std::string("\0{}", 3)) == "error: " + bad + ": expected JSON, got a NUL at byte 1\n");
  CHECK(squad(std::string("{}\0", 3)) == "error: " + bad + ": expected JSON, got a NUL at byte 3\n");
  CHECK(squad(R"({"1": {}})") == "error: " + bad + ": 1: expected a text, got {}\n");
  CHECK(squad(R"({"a\nb": 5})") == "error: " + bad + ": a\\x0ab: expected a text, got 5\n");
  CHECK(squad("[]") == "error: " + bad + ": expected an object, got []\n");
  CHECK(squad(R"({"2": "x"})") ==
        "error: " + data + ": question 2: answers: expected at least one, got none; hint: is it SQuAD 2.0?\n");
  write_text(bad, "{}");
  CHECK(refusal({"squad2", "--data", data, "--predictions", bad}) ==
        "error: " + data + ": expected at least one question that the predictions answer, got none\n");
  write_text(directory / "answers", R"({"1": "x"})");
  CHECK(refusal({"squad2", "--data", data, "--predictions", directory / "answers", "--null-odds", bad}) ==
        "error: " + bad + ": expected a number for question 1, got none\n");
  CHECK(squad("\"x\"") == "error: " + bad + ": expected an object, got \"x\"\n");
  CHECK(refusal({"squad2", "--data", data, "--predictions", directory / "answers", "--null-threshold", "1"}, 2) ==
        "error: --null-threshold: expected with --null-odds, got none\n");
  const auto odds = [&](const std::string& text) {
    write_text(bad, text);
    return refusal({"squad2", "--data", data, "--predictions", directory / "answers", "--null-odds", bad});
  };
  CHECK(odds(R"({"1": "x"})") == "error: " + bad + ": 1: expected a number, got \"x\"\n");
  CHECK(odds("5") == "error: " + bad + ": expected an object, got 5\n");
  write_text(bad, R"({"data": []})");
  CHECK(refusal({"squad", "--data", bad, "--predictions", directory / "answers"}) ==
        "error: " + bad + ": expected at least one question, got none\n");

  write_text(bad, "word tag\n");
  CHECK(refusal({"tokens", bad}) ==
        "error: " + bad + ":1: columns: expected word, true tag and predicted tag, got 2 of them\n");
  write_text(bad, "label\tprecision\trecall\tf1\tsupport\nB-A\t0.5\t0.5\t0.5\t2\n");
  CHECK(refusal({"tokens", bad}) ==
        "error: " + bad + ":1: columns: expected word, true tag and predicted tag, got those of eval_report.tsv\n");
  write_text(bad, "");
  CHECK(refusal({"tokens", bad}) == "error: " + bad + ": expected at least one word, got none\n");

  const std::string qrels = directory / "qrels";
  write_text(qrels, "1 0 a 1\n");
  const auto ranking = [&](const std::string& run) {
    write_text(bad, run);
    return refusal({"ranking", "--qrels", qrels, "--run", bad});
  };
  CHECK(ranking("1 a 1\n2 a 1\n1 b 2\n") ==
        "error: " + bad + ":3: query 1: expected its lines together, got more of them here\n");
  CHECK(ranking("q a 2\nq b 1\nq c 2\n") == "error: " + bad + ": query q: rank: expected each one once, got 2 twice\n");
  const std::string columns = "error: " + bad + ":1: columns: expected query id, passage id and rank, got ";
  CHECK(ranking("1 a\n") == columns + "2 of them\n");
  CHECK(ranking("1 a 1 2\n") == columns + "4 of them\n");
  CHECK(ranking("1 a one\n") == "error: " + bad + ":1: rank: expected a whole number, got \"one\"\n");
  CHECK(ranking("1 a " + std::string(900, 'x') + "\n").size() < bad.size() + 120);
  CHECK(ranking("1 a 0\n") == "error: " + bad + ":1: rank: expected at least 1, got 0\n");
  CHECK(ranking("") == "error: " + bad + ": expected at least one query, got none\n");
  CHECK(ranking("\n\n") == "error: " + bad + ": expected at least one query, got none\n");
}

TEST_CASE("a file that is not there is bad input in every command") {
  const support::TemporaryDirectory directory;
  const std::string absent = directory / "absent", data = directory / "data", answers = directory / "answers";
  write_text(data, R"({"data": []})");
  write_text(answers, "{}");
  const std::string expected = "error: " + absent + ": open: No such file or directory\n";
  CHECK(refusal({"tokens", absent}) == expected);
  CHECK(refusal({"squad", "--data", data, "--predictions", absent}) == expected);
  CHECK(refusal({"squad", "--data", absent, "--predictions", answers}) == expected);
  CHECK(refusal({"squad2", "--data", data, "--predictions", answers, "--null-odds", absent}) == expected);
  CHECK(refusal({"ranking", "--qrels", absent, "--run", answers}) == expected);
}
