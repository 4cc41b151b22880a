#include <doctest/doctest.h>

#include <cmath>

#include "bert/directory/config_file.h"
#include "io/line_source.h"
#include "support/conversation.h"
#include "support/small_heads.h"
#include "support/small_model.h"
#include "support/soon.h"

using namespace bertrand;
using support::run_program;
using support::write_text;

namespace {

support::Outcome extract(const support::TemporaryDirectory& directory, const std::vector<std::string>& flags) {
  std::vector<std::string> all = {"--model",          directory / "model",
                                  "--input",          directory / "lines.txt",
                                  "--output",         directory / "features.jsonl",
                                  "--max-seq-length", "12",
                                  "--threads",        "1"};
  all.insert(all.end(), flags.begin(), flags.end());
  return run_program("extract", all);
}

std::vector<std::string> tokens_of(const nlohmann::json& line) {
  std::vector<std::string> tokens;
  for (const auto& feature : line.at("features")) tokens.push_back(feature.at("token"));
  return tokens;
}

using Tokens = std::vector<std::string>;

}  // namespace

TEST_CASE("lines of one or two texts become Google's features, whatever the batches") {
  const support::TemporaryDirectory directory;
  support::write_small_model(directory / "model");
  write_text(
      directory / "lines.txt",
      "  Red fish ||| two birds. \r\n\nthe ||| green ||| blue\nred\nred red red red red red red red red red red red");
  REQUIRE(extract(directory, {"--layers", "-1,0", "--pooled"}).code == 0);
  const auto lines = support::read_json_lines(directory / "features.jsonl");
  REQUIRE(lines.size() == 5);
  CHECK(tokens_of(lines[0]) == Tokens{"[CLS]", "red", "fish", "[SEP]", "two", "bird", "##s", ".", "[SEP]"});
  CHECK(tokens_of(lines[1]) == Tokens{"[CLS]", "[SEP]"});
  CHECK(tokens_of(lines[2]) == Tokens{"[CLS]", "the", "[UNK]", "[UNK]", "[UNK]", "green", "[SEP]", "blue", "[SEP]"});
  CHECK(tokens_of(lines[4]).size() == 12);
  for (std::size_t i = 0; i < lines.size(); ++i) CHECK(lines[i].at("linex_index") == i);
  const auto& layers = lines[3].at("features")[1].at("layers");
  CHECK(layers[0].at("index") == -1);
  CHECK(layers[1].at("index") == 0);
  CHECK(layers[0].at("values") == layers[1].at("values"));  // the model has one layer
  CHECK(lines[3].at("pooled").size() == 16);

  const std::string together = support::read_text(directory / "features.jsonl");
  REQUIRE(extract(directory, {"--layers", "-1,0", "--pooled", "--batch-size", "1"}).code == 0);
  CHECK(support::read_text(directory / "features.jsonl") == together);
}

TEST_CASE("SIGTERM ends extract with its own exit code and leaves nothing behind") {
  const support::TemporaryDirectory directory;
  support::write_small_model(directory / "model");
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += "red fish ||| two birds.\n";
  write_text(directory / "lines.txt", text);
  support::Conversation work("extract", {"--model", directory / "model", "--input", directory / "lines.txt", "--output",
                                         directory / "features.jsonl", "--batch-size", "1", "--threads", "1"});
  const auto files = [&](std::string_view beginning) {
    return std::ranges::count_if(std::filesystem::directory_iterator(directory / ""), [&](const auto& entry) {
      return entry.path().filename().string().starts_with(beginning);
    });
  };
  REQUIRE(support::soon([&] { return files("features.jsonl.tmp-") > 0; }));
  work.signal(SIGTERM);
  CHECK(work.finish() == 75);
  CHECK(files("features.jsonl") == 0);
}

TEST_CASE("the values are those of the layer, rounded to six decimals") {
  const support::TemporaryDirectory directory;
  support::write_small_model(directory / "model");
  write_text(directory / "lines.txt", "red fish ||| bird\n");
  REQUIRE(extract(directory, {"--layers", "-1"}).code == 0);
  const auto line = support::read_json_lines(directory / "features.jsonl").at(0);

  const auto backend = open_cpu({.threads = 1});
  const bert::Config config = bert::read_config_file(directory / "model/config.json", bert::UnknownKeys::keep);
  support::SmallEncoder model(config);
  nn::ParameterSet parameters(model, *backend);
  bert::load_weights(directory / "model", parameters);
  const std::vector<bert::Sequence> sequence = {{.token_ids = {2, 5, 8, 3, 9, 3}, .token_types = {0, 0, 0, 0, 1, 1}}};
  const NoGrad no_grad;
  const auto expected = ops::to_host<float>(model.bert(bert::pack(sequence, *backend), {}).value());
  for (std::size_t row = 0; row < 6; ++row) {
    const auto& values = line.at("features")[row].at("layers")[0].at("values");
    REQUIRE(values.size() == 16);
    for (std::size_t column = 0; column < 16; ++column) {
      const double value = values[column], exact = expected[row * 16 + column];
      CHECK(std::abs(value - exact) <= 0.5000001e-6);
      CHECK(std::abs(value * 1e6 - std::round(value * 1e6)) < 1e-6);
    }
  }
}

TEST_CASE("extract computes in the type that --precision names") {
  const support::TemporaryDirectory directory;
  support::write_small_model(directory / "model");
  write_text(directory / "lines.txt", "red fish ||| bird\n");
  const auto first_values = [&](const std::vector<std::string>& flags) {
    REQUIRE(extract(directory, flags).code == 0);
    return support::read_json_lines(directory / "features.jsonl")
        .at(0)
        .at("features")[0]
        .at("layers")[0]
        .at("values")
        .get<std::vector<double>>();
  };
  const std::vector<double> exact = first_values({}), rounded = first_values({"--precision", "bf16"});
  const std::vector<double> in_f64 = first_values({"--precision", "f64"});
  for (std::size_t i = 0; i < exact.size(); ++i) {
    CHECK(std::abs(in_f64[i] - exact[i]) < 2e-6);
    CHECK(std::abs(rounded[i] - exact[i]) < 0.1);
    const auto value = static_cast<float>(rounded[i]);  // a number of 8 binary digits, written with six decimals
    CHECK(std::abs(static_cast<float>(BFloat16(value)) - value) < 1e-6f);
  }
  CHECK(extract(directory, {"--precision", "f8"}).code == 2);
}

TEST_CASE("without --layers the last two are written, or the only one") {
  const support::TemporaryDirectory directory;
  support::write_small_model(directory / "model");
  write_text(directory / "lines.txt", "red fish\n");
  REQUIRE(extract(directory, {}).code == 0);
  const auto layers = support::read_json_lines(directory / "features.jsonl")[0].at("features")[0].at("layers");
  REQUIRE(layers.size() == 1);
  CHECK(layers[0].at("index") == -1);

  support::write_small_model(directory / "model", 3);
  REQUIRE(extract(directory, {}).code == 0);
  const auto two = support::read_json_lines(directory / "features.jsonl")[0].at("features")[0].at("layers");
  REQUIRE(two.size() == 2);
  CHECK(two[0].at("index") == -1);
  CHECK(two[1].at("index") == -2);
}

TEST_CASE("layers that the model does not have are refused, and nothing is written") {
  const support::TemporaryDirectory directory;
  support::write_small_model(directory / "model");
  write_text(directory / "lines.txt", "red\n");
  for (const char* layers : {"-2", "1", "-1,", "x"}) {
    CAPTURE(layers);
    const support::Outcome outcome = extract(directory, {std::string("--layers=") + layers});
    CHECK(outcome.code == 2);
    CHECK(outcome.error.starts_with("error: --layers: expected numbers from -1 to 0 with commas between, got "));
  }
  CHECK_FALSE(std::filesystem::exists(directory / "features.jsonl"));
}

TEST_CASE("extract counts bytes that are not UTF-8, and refuses what is no text") {
  const support::TemporaryDirectory directory;
  support::write_small_model(directory / "model");
  write_text(directory / "lines.txt", "red\n  red fi\xFFsh\n");
  const support::Outcome odd = extract(directory, {});
  CHECK(odd.code == 0);
  CHECK(odd.error.starts_with("warning: " + (directory / "lines.txt").string() +
                              ":2: text: dropped 1 byte that is not UTF-8, the first one in column 9; hint: iconv "
                              "turns other encodings into UTF-8\n"));
  CHECK(tokens_of(support::read_json_lines(directory / "features.jsonl").at(1)) ==
        Tokens{"[CLS]", "red", "fish", "[SEP]"});
  write_text(directory / "lines.txt", std::string("r\0e\0d\0", 6));
  CHECK(extract(directory, {}).code == 3);
  for (const auto& [name, what] : {std::pair("x.jsonl", "JSON"), {"x.json", "JSON"}, {"x.tsv", "a table"}}) {
    write_text(directory / name, "red\n");
    const support::Outcome other = run_program("extract", {"--model", directory / "model", "--input", directory / name,
                                                           "--output", directory / "other.jsonl"});
    CHECK(other.code == 2);
    CHECK(other.error == "error: --input: expected lines of text, got " + std::string(what) + " by its name, " +
                             (directory / name).string() + "; hint: a file of the texts alone, .txt\n");
  }
}

TEST_CASE("extract refuses a line that no text has with its number") {
  const support::TemporaryDirectory directory;
  support::write_small_model(directory / "model");
  write_text(directory / "lines.txt", "red\nfish\n");
  std::filesystem::resize_file(directory / "lines.txt", 9 + io::LineSource::kLongest + 1);  // takes no room on the disk
  const support::Outcome outcome = extract(directory, {});
  CHECK(outcome.code == 3);
  CHECK(outcome.error ==
        "error: " + (directory / "lines.txt").string() + ":3: expected a line of at most 67108864 bytes, got more\n");
  std::filesystem::resize_file(directory / "lines.txt", 9 + io::LineSource::kLongest);
  CHECK(extract(directory, {}).error.find("lines.txt:3: expected text in UTF-8, got a NUL byte") != std::string::npos);
}

TEST_CASE("extract neither replaces its vocabulary nor takes --cased for a model that says so itself") {
  const support::TemporaryDirectory directory;
  support::write_small_model(directory / "model");
  write_text(directory / "lines.txt", "red\n");
  const std::string vocabulary = support::read_text(directory / "model/vocab.txt");
  write_text(directory / "vocab.txt", vocabulary);
  CHECK(extract(directory, {"--vocab-file", directory / "vocab.txt", "--output", directory / "vocab.txt"}).code == 2);
  CHECK(support::read_text(directory / "vocab.txt") == vocabulary);
  CHECK(extract(directory, {"--output", directory / "model/vocab.txt"}).code == 2);
  CHECK(support::read_text(directory / "model/vocab.txt") == vocabulary);
  CHECK(extract(directory, {"--cased"}).code == 2);
  CHECK(extract(directory, {"--cased", "--vocab-file", directory / "vocab.txt"}).code == 0);
}

TEST_CASE("extracting takes the memory of the weights and of their file and none for gradients") {
  const support::TemporaryDirectory directory;
  constexpr Dim kPositions = 1'000'000;  // 64 MB
  support::write_small_model(directory / "model", 1, kPositions);
  write_text(directory / "lines.txt", "red fish\n");
  const support::Outcome outcome = extract(directory, {});
  REQUIRE(outcome.code == 0);
  CHECK(static_cast<double>(outcome.peak_bytes) < 2.5 * 16 * 4 * kPositions);  // 3 times and more with gradients
}

TEST_CASE("a value of config.json that no program uses is held once") {
  const support::TemporaryDirectory directory;
  support::write_small_model(directory / "model");
  write_text(directory / "lines.txt", "red fish\n");
  std::string list = "\"\"";  // of empty texts, which takes the most memory for its bytes
  for (int doublings = 0; doublings < 21; ++doublings) list += "," + list;
  std::string config = support::read_text(directory / "model/config.json");
  config.insert(1, "\"_mine\": [" + list + "],");
  write_text(directory / "model/config.json", config);
  const support::Outcome outcome = extract(directory, {});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
#ifndef __SANITIZE_ADDRESS__  // which puts bytes around each text
  CHECK(static_cast<double>(outcome.peak_bytes) < 44.0 * static_cast<double>(config.size()));  // 36; 57 with a copy
#endif
}

TEST_CASE("extract replaces no file that its model is read from") {
  const support::TemporaryDirectory directory;
  support::write_small_model(directory / "model");
  write_text(directory / "lines.txt", "red\n");
  for (const char* name : {"model-00001-of-00002.safetensors", "model.safetensors.index.json", "added_tokens.json"}) {
    CAPTURE(name);
    const std::string file = directory / (std::string("model/") + name);
    write_text(file, "{}");
    const support::Outcome outcome =
        run_program("extract", {"--model", directory / "model", "--input", directory / "lines.txt", "--output", file});
    CHECK(outcome.code == 2);
    CHECK(outcome.error.find("--output: expected another file than the input, got ") != std::string::npos);
    CHECK(support::read_text(file) == "{}");
  }
}

TEST_CASE("a link to nothing is a bad model where extract needs it, and else nothing") {
  const support::TemporaryDirectory directory;
  support::write_small_model(directory / "model");
  write_text(directory / "lines.txt", "red\n");
  std::filesystem::create_symlink("nothing", directory / "model/old.safetensors");
  CHECK(extract(directory, {}).code == 0);
  std::filesystem::remove(directory / "model/model.safetensors");
  std::filesystem::create_symlink("nothing", directory / "model/model.safetensors");
  CHECK(extract(directory, {}).code == 4);
}

TEST_CASE("a line is cut to the positions of the model if these are fewer than 128") {
  const support::TemporaryDirectory directory;
  support::write_small_model(directory / "model");  // of 24 positions
  std::string line;
  for (int i = 0; i < 200; ++i) line += "red ";
  write_text(directory / "lines.txt", line);
  CHECK(run_program("extract", {"--model", directory / "model", "--input", directory / "lines.txt", "--output",
                                directory / "features.jsonl"})
            .code == 0);
  CHECK(tokens_of(support::read_json_lines(directory / "features.jsonl").at(0)).size() == 24);
}

TEST_CASE("a model without positions for a piece is refused as a model where no length is given") {
  const support::TemporaryDirectory directory;
  support::write_small_model(directory / "model", 1, 2);
  write_text(directory / "lines.txt", "red\n");
  const support::Outcome outcome = run_program(
      "extract",
      {"--model", directory / "model", "--input", directory / "lines.txt", "--output", directory / "features.jsonl"});
  CHECK(outcome.code == 4);
  CHECK(outcome.error.find("max_position_embeddings: expected at least 3 to read a text, got 2") != std::string::npos);
}

TEST_CASE("a line that the model cannot take is named by its number") {
  const support::TemporaryDirectory directory;
  support::write_small_head<support::SmallEncoder>(directory / "model", {.architecture = "", .types = 1});
  write_text(directory / "lines.txt", "red\nblue\nred ||| fish\n");
  const support::Outcome outcome = extract(directory, {"--batch-size", "2"});
  CHECK(outcome.code == 3);
  CHECK(outcome.error.starts_with("error: example 2: token type: expected 0 to 0 (type_vocab_size), got 1"));
  write_text(directory / "lines.txt", "red\nblue\nred\nred ||| fish\n");  // the second of its batch
  CHECK(extract(directory, {"--batch-size", "2"}).error.starts_with("error: example 3: token type: "));
}

TEST_CASE("rows of the word embeddings that have no token are told") {
  const support::TemporaryDirectory directory;
  support::write_small_head<support::SmallEncoder>(directory / "model", {.architecture = "", .rows = 32});
  write_text(directory / "lines.txt", "red\n");
  const support::Outcome outcome = extract(directory, {});
  CHECK(outcome.code == 0);
  CHECK(outcome.error.starts_with("warning: " + (directory / "model/vocab.txt").string() +
                                  ": 15 tokens for 32 rows of word embeddings: the rest is taken for padding\n"));
}

TEST_CASE("one vector a line is the mean of its tokens, as JSON and as an array for NumPy") {
  const support::TemporaryDirectory directory;
  support::write_small_model(directory / "model");
  write_text(directory / "lines.txt", "red fish\nblue\ntwo green birds");
  REQUIRE(extract(directory, {"--layers", "-1"}).code == 0);
  const auto tokens = support::read_json_lines(directory / "features.jsonl");
  REQUIRE(extract(directory, {"--pooling", "mean", "--batch-size", "2"}).code == 0);
  const auto lines = support::read_json_lines(directory / "features.jsonl");
  REQUIRE(lines.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) CHECK(lines[i].at("linex_index") == i);
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 16; ++j) {
      double mean = 0;
      for (const auto& feature : tokens[i].at("features")) mean += feature["layers"][0]["values"][j].get<double>();
      mean /= static_cast<double>(tokens[i].at("features").size());
      CHECK(lines[i].at("embedding")[j].get<double>() == doctest::Approx(mean).epsilon(1e-4));
    }

  const auto array =
      run_program("extract", {"--model", directory / "model", "--input", directory / "lines.txt", "--output",
                              directory / "vectors.npy", "--pooling", "mean", "--normalize", "--threads", "1"});
  REQUIRE_MESSAGE(array.code == 0, array.error);
  const std::string bytes = support::read_text(directory / "vectors.npy");
  REQUIRE(bytes.size() == 128 + 3 * 16 * sizeof(float));
  CHECK(bytes.find("'shape': (3, 16)") != std::string::npos);
  for (std::size_t i = 0; i < 3; ++i) {
    std::vector<float> row(16);
    std::memcpy(row.data(), bytes.data() + 128 + i * 64, 64);
    double squares = 0, raw = 0;
    for (std::size_t j = 0; j < 16; ++j) {
      squares += row[j] * row[j];
      raw += std::pow(lines[i].at("embedding")[j].get<double>(), 2);
    }
    CHECK(squares == doctest::Approx(1).epsilon(1e-5));
    CHECK(row[0] == doctest::Approx(lines[i].at("embedding")[0].get<double>() / std::sqrt(raw)).epsilon(1e-4));
  }
}

TEST_CASE("the vector of a line may be that of its [CLS], in a layer counted from the first, or the pooler's") {
  const support::TemporaryDirectory directory;
  support::write_small_model(directory / "model", 2);
  write_text(directory / "lines.txt", "red fish\nblue\ntwo green birds");
  const auto extracted = [&](const std::vector<std::string>& flags) {
    const auto outcome = extract(directory, flags);
    REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
    return support::read_json_lines(directory / "features.jsonl");
  };
  const auto all = extracted({"--layers", "0", "--pooled"}), first = extracted({"--pooling", "cls", "--layers", "0"}),
             pooled = extracted({"--pooling", "pooler"});
  REQUIRE(first.size() == 3);
  REQUIRE(pooled.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(first[i].at("embedding") == all[i].at("features")[0].at("layers")[0].at("values"));
    CHECK(pooled[i].at("embedding") == all[i].at("pooled"));
  }
  for (const char* last : {"1", "-1"}) CHECK(extracted({"--pooling", "pooler", "--layers", last}) == pooled);
  for (const std::string other : {"0", "-2"})
    CHECK(extract(directory, {"--pooling", "pooler", "--layers", other}).error ==
          "error: --layers: expected the last, 1, with --pooling pooler, got " + other + "\n");
}

TEST_CASE("a pooler that the weights do not have is refused with the flag that asks for it") {
  const support::TemporaryDirectory directory;
  support::write_small_model(directory / "model");
  write_text(directory / "lines.txt", "red fish");
  const std::string file = directory / "model/model.safetensors";
  std::string bytes = support::read_text(file);
  for (std::size_t at = 0; (at = bytes.find("\"bert.pooler.", at)) != std::string::npos;) bytes[at + 6] = 'x';
  write_text(file, bytes);
  CHECK(extract(directory, {}).code == 0);
  for (const auto& [flags, refused] :
       {std::pair(std::vector<std::string>{"--pooled"},
                  "--pooled, got none; hint: without --pooled the rows of its tokens are written"),
        {{"--pooling", "pooler"}, "--pooling pooler, got none; hint: --pooling mean"}}) {
    const auto outcome = extract(directory, flags);
    CHECK(outcome.code == 4);
    CHECK(outcome.error == "error: " + file + ": weights: expected a pooler for " + refused + "\n");
  }
}

TEST_CASE("an array of a vector a token is refused with what to do instead") {
  const support::TemporaryDirectory directory;
  support::write_small_model(directory / "model");
  write_text(directory / "lines.txt", "red fish");
  const auto outcome = run_program("extract", {"--model", directory / "model", "--input", directory / "lines.txt",
                                               "--output", directory / "vectors.npy"});
  CHECK(outcome.code == 2);
  CHECK(outcome.error.find("hint: lines have different numbers of tokens") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(directory / "vectors.npy"));
}
