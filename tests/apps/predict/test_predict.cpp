// predict as a user runs it: lines in, answers out.
#include <doctest/doctest.h>
#include <pty.h>
#include <sys/stat.h>
#include <termios.h>

#include "support/conversation.h"
#include "support/gzip.h"
#include "support/small_heads.h"
#include "support/soon.h"

using namespace bertrand;
using support::Conversation;
using support::Outcome;
using support::run_program;
using support::write_text;

namespace {

/// A directory with the model of a classifier.
class Setting {
 public:
  Setting() { support::write_small_classifier(directory_ / "model"); }
  std::string operator/(const std::string& name) const { return (directory_ / name).string(); }

  std::vector<std::string> flags(const std::vector<std::string>& more = {}) const {
    return support::with_defaults({"--model", *this / "model", "--threads", "1"}, more);
  }
  Outcome predict(const std::vector<std::string>& more) const { return run_program("predict", flags(more)); }
  /// The answers to the lines of this text.
  std::vector<nlohmann::json> answers(const std::string& name, const std::string& text,
                                      std::vector<std::string> more = {}) const {
    write_text(*this / name, text);
    more.insert(more.end(), {"--input", *this / name, "--output", *this / "answers"});
    const Outcome outcome = predict(more);
    CHECK(outcome.code == 0);
    return support::read_json_lines(*this / "answers");
  }

 private:
  support::TemporaryDirectory directory_;
};

/// Lines of 1 to 20 words, in no order of length.
std::string many_lines(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    for (int j = 0; j <= i * 7 % 20; ++j) text += std::array{"red ", "fish ", "the ", "birds "}[(i * 3 + j) % 4];
    text += "\n";
  }
  return text;
}

/// FIFOs are opened by two sides at once.
void write_later(const std::string& file, const std::string& text) {
  if (fork() != 0) return;
  write_text(file, text);
  _exit(0);
}

}  // namespace

TEST_CASE("answers come in the order of the lines whatever the batches") {
  const Setting setting;
  const auto together = setting.answers("lines", many_lines(500));
  CHECK(together.size() == 500);
  CHECK(setting.answers("lines", many_lines(500), {"--max-batch-tokens", "1"}) == together);
  const auto few = setting.answers("lines", many_lines(7));
  CHECK(few == std::vector(together.begin(), together.begin() + 7));
}

TEST_CASE("a text and its JSON have the same answer and the first line says which of them all are") {
  const Setting setting;
  const auto text = setting.answers("lines", "red fish ||| bird\nthe {fish}\n{red}\n");
  const std::string json = R"({"text": "red fish", "text_pair": "bird"})"
                           "\n"
                           R"({"id": 3, "text": "the {fish}"})"
                           "\n"
                           R"({"text": "{red}"})";
  CHECK(text.size() == 3);
  CHECK(setting.answers("lines", json) == text);
  CHECK(setting.answers("lines", " \t" + json) == text);
  CHECK(setting.answers("lines.jsonl", json) == text);
  for (const char* name : {"lines.ndjson", "lines.json"}) CHECK(setting.answers(name, " \n" + json + "\n\n") == text);
  CHECK(setting.answers("lines.jsonl", "{red}\n", {"--input-format", "text"})[0] == text[2]);
  write_text(setting / "other", "red fish\n{\"text\": \"red\"}\n");
  CHECK(setting.predict({"--input", setting / "other", "--input-format", "jsonl"}).code == 3);
}

TEST_CASE("lines end with LF or CRLF or the file and may begin with a byte order mark") {
  const Setting setting;
  const auto expected = setting.answers("lines", "red fish\nthe bird\n");
  CHECK(setting.answers("lines", "\xEF\xBB\xBFred fish\r\nthe bird") == expected);
  CHECK(setting.answers("lines", "").empty());
  const std::string json = "{\"text\": \"red fish\"}\r\n{\"text\": \"the bird\"}\r\n";
  CHECK(setting.answers("lines", "\xEF\xBB\xBF" + json) == expected);
}

TEST_CASE("a gzip file and a pipe are read as the file that they hold") {
  const Setting setting;
  const std::string text = many_lines(30);
  const auto expected = setting.answers("lines", text);
  support::write_text(setting / "lines.gz", support::gzipped(text));
  CHECK(setting.predict({"--input", setting / "lines.gz", "--output", setting / "a"}).code == 0);
  CHECK(support::read_json_lines(setting / "a") == expected);
  for (const char* name : {"lines.jsonl.gz", "lines.jsonl.zst"}) {  // whose lines are no JSON
    std::filesystem::copy_file(setting / "lines.gz", setting / name);
    CHECK(setting.predict({"--input", setting / name, "--output", setting / "c"}).code == 3);
  }
  REQUIRE(::mkfifo((setting / "pipe").c_str(), 0600) == 0);
  write_later(setting / "pipe", text);
  CHECK(setting.predict({"--input", setting / "pipe", "--output", setting / "b"}).code == 0);
  CHECK(support::read_json_lines(setting / "b") == expected);
}

TEST_CASE("a line that comes alone is answered before the next one comes") {
  const Setting setting;
  const auto expected = setting.answers("lines", "red fish\nthe bird\nblue\n");
  Conversation talk("predict", setting.flags());
  talk.say("red fish\n");
  CHECK(nlohmann::json::parse(talk.line()) == expected[0]);
  talk.say("the ");
  talk.say("bird\nblue");  // the end of the second line is that of all that can be answered
  CHECK(nlohmann::json::parse(talk.line()) == expected[1]);
  talk.hang_up();
  CHECK(nlohmann::json::parse(talk.line()) == expected[2]);
  CHECK(talk.finish() == 0);
}

TEST_CASE("a line that is typed at a terminal is answered there at once") {
  const Setting setting;
  const auto expected = setting.answers("lines", "red fish\n");
  int master = -1, slave = -1;
  REQUIRE(::openpty(&master, &slave, nullptr, nullptr, nullptr) == 0);
  termios plain{};
  ::tcgetattr(slave, &plain);
  plain.c_lflag &= ~static_cast<tcflag_t>(ECHO);  // what is read back is the program's alone
  ::tcsetattr(slave, TCSANOW, &plain);
  const pid_t child = fork();
  if (child == 0) {
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(slave, stream);
    close(master);
    const std::string program = paths::binary + "/predict";
    std::vector<std::string> flags = setting.flags();
    std::vector<char*> argv{const_cast<char*>(program.c_str())};
    for (std::string& flag : flags) argv.push_back(flag.data());
    argv.push_back(nullptr);
    execv(program.c_str(), argv.data());
    _exit(127);
  }
  close(slave);
  REQUIRE(::write(master, "red fish\n", 9) == 9);  // and no end of the input
  std::string line;
  pollfd input{.fd = master, .events = POLLIN, .revents = 0};
  for (char c = 0; ::poll(&input, 1, 20'000) > 0 && ::read(master, &c, 1) == 1 && c != '\n';) line += c;
  CHECK(nlohmann::json::parse(line) == expected[0]);
  REQUIRE(::write(master, "\4", 1) == 1);  // Ctrl-D
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  close(master);
}

TEST_CASE("SIGTERM ends the program while it waits for a line and all answers are kept") {
  const Setting setting;
  Conversation talk("predict", setting.flags());
  talk.say("red fish\n");
  CHECK(talk.line().starts_with("{\"label\":"));
  talk.signal(SIGTERM);
  CHECK(talk.finish() == 75);

  Conversation file("predict", setting.flags({"--output", setting / "answers"}));
  file.say("red fish\n");
  const auto has_answer = [&] {
    for (const auto& entry : std::filesystem::directory_iterator(setting / ""))
      if (entry.path().filename().string().starts_with("answers.tmp-") && entry.file_size() > 0) return true;
    return false;
  };
  REQUIRE(support::soon(has_answer));
  file.signal(SIGTERM);
  CHECK(file.finish() == 75);
  CHECK(support::read_json_lines(setting / "answers").size() == 1);
}

TEST_CASE("SIGTERM ends the program while nobody reads its answers") {
  const Setting setting;
  Conversation talk("predict", setting.flags());
  std::string lines;
  for (int i = 0; i < 6000; ++i) lines += "red fish\n";
  talk.say(lines);  // whose answers are more than a pipe holds
  CHECK(talk.line().starts_with("{\"label\":"));
  usleep(500'000);
  talk.signal(SIGTERM);
  CHECK(talk.finish() == 75);
}

TEST_CASE("what a killed program leaves of its output is gone when the next one has written the same output") {
  const Setting setting;
  const auto names = [&] {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(setting / ""))
      if (const std::string name = entry.path().filename(); name.starts_with("answers")) found.push_back(name);
    return found;
  };
  Conversation killed("predict", setting.flags({"--output", setting / "answers"}));
  REQUIRE(support::soon([&] { return !names().empty(); }));
  killed.signal(SIGKILL);
  killed.finish();
  REQUIRE(names().size() == 1);
  CHECK(names()[0].starts_with("answers.tmp-"));
  support::write_text(setting / "lines", "red fish\n");
  CHECK(setting.predict({"--input", setting / "lines", "--output", setting / "answers"}).code == 0);
  CHECK(names() == std::vector<std::string>{"answers"});
}

TEST_CASE("who stops reading ends the program without a word") {
  const Setting setting;
  Conversation talk("predict", setting.flags());
  talk.say("red\n");
  talk.line();
  talk.stop_reading();
  talk.say("red\n");
  CHECK(talk.finish() == 128 + SIGPIPE);
}

TEST_CASE("an output is replaced when the new one is whole and never one that predict reads") {
  const Setting setting;
  write_text(setting / "lines", "red\n\n");
  write_text(setting / "empty", "\nred\n");
  write_text(setting / "answers", "old\n");
  CHECK(setting.predict({"--input", setting / "empty", "--output", setting / "answers"}).code == 3);
  CHECK(support::read_text(setting / "answers") == "old\n");
  CHECK(setting.predict({"--input", setting / "lines", "--output", setting / "answers"}).code == 3);
  CHECK(support::read_json_lines(setting / "answers").size() == 1);
  for (const char* name : {"lines", "model/vocab.txt", "model/model.safetensors"}) {
    const std::string before = support::read_text(setting / name);
    CHECK(setting.predict({"--input", setting / "lines", "--output", setting / name}).code == 2);
    CHECK(support::read_text(setting / name) == before);
  }
}

TEST_CASE("the task follows from config.json and --task has the last word") {
  const Setting setting;
  write_text(setting / "lines", "red [MASK]\n");
  CHECK(setting.predict({"--input", setting / "lines", "--task", "embed"}).out.starts_with("{\"embedding\":["));
  support::write_small_head<bert::ForPretraining>(setting / "masked", {.architecture = "BertForPreTraining"});
  const Outcome masked = setting.predict({"--model", setting / "masked", "--input", setting / "lines", "--top-k", "2"});
  CHECK(masked.out.starts_with("{\"masks\":[{\"position\":2,\"start\":4,\"end\":10,\"predictions\":[{\"token\":\""));
  support::write_small_model(setting / "none");
  const Outcome none = setting.predict({"--model", setting / "none", "--input", setting / "lines"});
  CHECK(none.code == 4);
  CHECK(none.error.find("config.json: architectures: expected one of BertForSequenceClassification, ") !=
        std::string::npos);
  const Outcome lacking = setting.predict({"--input", setting / "lines", "--task", "fill-mask"});
  CHECK(lacking.code == 4);
  CHECK(lacking.error.find("model.safetensors: expected the tensors that --task fill-mask needs, got none for "
                           "cls.predictions.bias, ") != std::string::npos);
}

TEST_CASE("a model that was fine-tuned for one task is refused for another") {
  const Setting setting;
  write_text(setting / "lines", "red fish\n");
  const Outcome outcome = setting.predict({"--input", setting / "lines", "--task", "tokens"});
  CHECK(outcome.code == 4);
  CHECK(outcome.out.empty());
  CHECK(outcome.error == "error: " + setting / "model/config.json" +
                             ": architectures: expected a model for --task tokens, got "
                             "[\"BertForSequenceClassification\"], which is for --task classify\n");
  support::write_small_head<bert::ForSequenceClassification>(setting / "unnamed", {.architecture = ""}, 2);
  CHECK(setting.predict({"--model", setting / "unnamed", "--input", setting / "lines", "--task", "classify"}).code ==
        0);
}

TEST_CASE("the words of a text are labelled and a long text in windows") {
  const Setting setting;
  support::write_small_labeller(setting / "tokens", {"O", "B-A", "I-A"});
  const std::vector<std::string> flags = {"--model", setting / "tokens", "--max-seq-length", "8", "--doc-stride", "1"};
  const auto answers = setting.answers("lines", many_lines(20), flags);
  REQUIRE(answers.size() == 20);
  for (std::size_t i = 0; i < 20; ++i) CHECK(answers[i].at("words").size() == i * 7 % 20 + 1);
  const auto labelled = [&](const std::string& key) {
    return setting.answers("lines", "{\"" + key + "\": [\"red fish\", \"birds\"]}", flags)[0];
  };
  CHECK(labelled("tokens") == labelled("words"));
  CHECK(setting.answers("lines", R"({"text": "red fish", "tokens": ["r", "##ed"]})", flags) ==
        setting.answers("lines", R"({"text": "red fish"})", flags));
  const auto word = labelled("words").at("words")[0];
  CHECK(word.at("word") == "red fish");
  CHECK(word.at("end") == 8);
}

TEST_CASE("ten thousand words of one line are labelled one by one") {
  const Setting setting;
  support::write_small_labeller(setting / "tokens", {"O", "B-A", "I-A"});
  std::string text;
  for (int i = 0; i < 10'000; ++i) text += i % 2 ? "fish " : "red ";
  const auto answers = setting.answers("lines", text + "\nred fish\n", {"--model", setting / "tokens"});
  REQUIRE(answers.size() == 2);
  const auto& words = answers[0].at("words");
  REQUIRE(words.size() == 10'000);
  CHECK(words[9'999].at("word") == "fish");
  CHECK(words[9'999].at("end") == text.size() - 1);
  CHECK(answers[1].at("words").size() == 2);
}

TEST_CASE("a question may have no answer if its threshold is given") {
  const Setting setting;
  support::write_small_head<bert::ForQuestionAnswering>(setting / "answer",
                                                        {.architecture = "BertForQuestionAnswering"});
  const std::vector<std::string> flags = {"--model", setting / "answer", "--max-query-length",
                                          "4",       "--max-seq-length", "12"};
  const auto with = [&](const std::string& threshold) {
    auto more = flags;
    if (!threshold.empty()) more.push_back("--null-score-diff-threshold=" + threshold);
    return setting.answers("lines", "the fish ||| red birds.\n", more).at(0);
  };
  CHECK_FALSE(with("").contains("null_odds"));
  CHECK(with("").at("answer") != "");
  CHECK(with("1000").at("answer") != "");
  CHECK(with("-1000").at("answer") == "");
  CHECK(with("-1000").at("end") == 0);
  CHECK(with("-1000").contains("null_odds"));
}

TEST_CASE("half types and other numbers of threads answer too") {
  const Setting setting;
  const auto f32 = setting.answers("lines", many_lines(20));
  CHECK(setting.answers("lines", many_lines(20), {"--threads", "3"}) == f32);
  for (const auto& [precision, apart] : {std::pair("bf16", 0.03), {"f16", 0.005}, {"f64", 1e-5}}) {
    CAPTURE(precision);
    const auto other = setting.answers("lines", many_lines(20), {"--precision", precision});
    REQUIRE(other.size() == 20);
    for (std::size_t i = 0; i < 20; ++i)
      CHECK(other[i].at("scores").at("fish").get<double>() ==
            doctest::Approx(f32[i].at("scores").at("fish").get<double>()).scale(0).epsilon(apart));
    if (std::string(precision) != "f64") CHECK(other != f32);
  }
}

TEST_CASE("a GPU gives the answers of the CPU") {
  const Setting setting;
  const auto expected = setting.answers("lines", many_lines(5));
  const auto emulated = setting.answers("lines", many_lines(5), {"--device", "emulated-cuda"});
  REQUIRE(emulated.size() == 5);
  for (std::size_t i = 0; i < 5; ++i)
    CHECK(emulated[i].at("score").get<double>() ==
          doctest::Approx(expected[i].at("score").get<double>()).scale(0).epsilon(1e-5));
}

TEST_CASE("answers begin with their text if that is asked for, and - is standard input") {
  const Setting setting;
  const auto answers = setting.answers("lines.txt", "red fish\nblue bird\n", {"--with-text"});
  REQUIRE(answers.size() == 2);
  CHECK(answers[0].at("text") == "red fish");
  CHECK(answers[1].at("text") == "blue bird");
  CHECK(answers[0].contains("label"));
  CHECK_FALSE(setting.answers("plain.txt", "red fish\n")[0].contains("text"));
  Conversation conversation("predict", setting.flags({"--input", "-"}));
  conversation.say("red fish\n");
  CHECK(nlohmann::json::parse(conversation.line()).contains("label"));
}
