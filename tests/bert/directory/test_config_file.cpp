#include "bert/directory/config_file.h"

#include <doctest/doctest.h>

#include <chrono>

#include "bert/directory/model_directory.h"
#include "io/error.h"
#include "io/json.h"
#include "support/growth.h"
#include "support/program.h"
#include "support/refusal.h"

using namespace bertrand;
using namespace bertrand::bert;
using Unknown = UnknownKeys;

namespace {

Config parse(const std::string& text, Unknown unknown = Unknown::keep) { return parse_config(text, "c.json", unknown); }

std::string refusal(const std::string& text, Unknown unknown = Unknown::keep) {
  try {
    parse(text, unknown);
  } catch (const Error& error) {
    CHECK(error.failure() == (unknown == Unknown::refuse ? Failure::usage : Failure::model));
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("the presets are the sizes of Turc et al. and Devlin et al.") {
  for (const auto& [name, layers, hidden, heads] :
       std::vector<std::tuple<std::string, Dim, Dim, Dim>>{{"tiny", 2, 128, 2},
                                                           {"mini", 4, 256, 4},
                                                           {"small", 4, 512, 8},
                                                           {"medium", 8, 512, 8},
                                                           {"base", 12, 768, 12},
                                                           {"large", 24, 1024, 16}}) {
    CAPTURE(name);
    REQUIRE(Config::is_preset(name));
    const Config c = Config::preset(name);
    CHECK(c.num_hidden_layers == layers);
    CHECK(c.hidden_size == hidden);
    CHECK(c.num_attention_heads == heads);
    CHECK(c.intermediate_size == 4 * hidden);
    CHECK(c.max_position_embeddings == 512);
  }
  CHECK_FALSE(Config::is_preset("huge"));
  CHECK_THROWS_WITH_AS(Config::preset("huge"),
                       "--config: expected tiny, mini, small, medium, base, large or a file, got \"huge\"", Error);
}

TEST_CASE("what a file leaves out is as Google's code has it") {
  const Config c = parse(R"({"vocab_size": 100})");
  CHECK(c.vocab_size == 100);
  CHECK(c.hidden_size == 768);
  CHECK(c.num_hidden_layers == 12);
  CHECK(c.type_vocab_size == 16);
  CHECK(parse_config(R"({"model_type": "bert"})", "c.json", UnknownKeys::keep).type_vocab_size == 2);
  CHECK(c.hidden_act == Activation::gelu);
  CHECK(c.hidden_dropout_prob == 0.1);
  CHECK(c.head_dropout() == 0.1);
  CHECK(c.layer_norm_eps == 1e-12);
  CHECK(c.labels.empty());
}

TEST_CASE("a configuration is written as transformers reads it, and reads back the same") {
  const std::string text = R"({"vocab_size": 9, "hidden_size": 8, "num_hidden_layers": 3, "num_attention_heads": 4,
    "intermediate_size": 5, "hidden_act": "gelu_new", "hidden_dropout_prob": 0.25, "classifier_dropout": 0.5,
    "attention_probs_dropout_prob": 0, "max_position_embeddings": 77, "type_vocab_size": 3, "initializer_range": 0.01,
    "layer_norm_eps": 1e-7, "id2label": {"1": "b", "0": "a"}, "label2id": {"a": 0, "b": 1},
    "problem_type": "single_label_classification", "architectures": ["BertModel"], "mine": {"x": [1]},
    "torch_dtype": "float16"})";
  const Config c = parse(text);
  CHECK(c.labels == std::vector<std::string>{"a", "b"});
  CHECK(c.head_dropout() == 0.5);
  const auto json = nlohmann::json::parse(config_text(c));
  CHECK(json.at("model_type") == "bert");
  CHECK(json.at("hidden_act") == "gelu_new");
  CHECK(json.at("id2label") == nlohmann::json({{"0", "a"}, {"1", "b"}}));
  CHECK(json.at("label2id") == nlohmann::json({{"a", 0}, {"b", 1}}));
  CHECK(json.at("mine") == nlohmann::json::parse(R"({"x": [1]})"));  // another program's keys stay
  CHECK_FALSE(json.contains("torch_dtype"));                         // those about the file that was read do not
  const auto given = nlohmann::json::parse(text);
  for (const char* key :
       {"vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
        "hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout", "max_position_embeddings",
        "type_vocab_size", "initializer_range", "layer_norm_eps", "problem_type", "architectures"}) {
    CAPTURE(key);
    CHECK(json.at(key) == given.at(key));
  }
  CHECK(config_text(parse(config_text(c))) == config_text(c));
}

TEST_CASE("values of another kind or out of range name the key, what was expected and what was found") {
  CHECK(refusal(R"({"vocab_size": 0})") == "c.json: vocab_size: expected an integer in [1, 16777216], got 0");
  CHECK(refusal(R"({"vocab_size": 1e9})") ==
        "c.json: vocab_size: expected an integer in [1, 16777216], got 1000000000.0");
  CHECK(refusal(R"({"hidden_size": "768"})") == "c.json: hidden_size: expected an integer in [1, 65536], got \"768\"");
  CHECK(refusal(R"({"num_hidden_layers": -1})") ==
        "c.json: num_hidden_layers: expected an integer in [0, 1024], got -1");
  CHECK(
      refusal(R"({"num_hidden_layers": 18446744073709551615})").starts_with("c.json: num_hidden_layers: expected an"));
  CHECK(refusal(R"({"type_vocab_size": null})") ==
        "c.json: type_vocab_size: expected an integer in [1, 65536], got null");
  CHECK(refusal(R"({"hidden_dropout_prob": 1})") ==
        "c.json: hidden_dropout_prob: expected a number in [0, 0.999], got 1");
  CHECK(refusal(R"({"layer_norm_eps": "small"})") ==
        "c.json: layer_norm_eps: expected a number in [0, 1], got \"small\"");
  CHECK(refusal(R"({"hidden_act": "silu"})") ==
        "c.json: hidden_act: expected gelu, gelu_new, gelu_pytorch_tanh or relu, got \"silu\"");
  CHECK(refusal(R"({"hidden_act": 3})") == "c.json: hidden_act: expected a string, got 3");
  CHECK(refusal(R"({"hidden_size": [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21]})").ends_with("…"));
  CHECK(refusal(R"({"hidden_size": 10, "num_attention_heads": 3})") ==
        "c.json: hidden_size: expected a multiple of num_attention_heads (3), got 10");
}

TEST_CASE("labels must be numbered from 0 without a gap, and differ") {
  CHECK(refusal(R"({"id2label": {"0": "a", "2": "b"}})") ==
        "c.json: id2label: expected a name for each of \"0\" to \"1\", got none for \"1\"");
  for (const char* other : {"null", "true", "1.5", "[]"})
    CHECK(
        refusal(fmt::format(R"({{"id2label": {{"0": {}}}}})", other)) ==
        fmt::format("c.json: id2label: expected a text as the name of \"0\", got {}; hint: put a name there, in quotes",
                    other));
  CHECK(refusal(R"({"id2label": ["a"]})") == "c.json: id2label: expected an object, got [\"a\"]");
  CHECK(refusal(R"({"id2label": {"0": "a", "1": "b", "2": "a"}})") ==
        "c.json: id2label: expected different names, got \"a\" twice");
  CHECK(parse(R"({"num_labels": 2})").labels == std::vector<std::string>{"LABEL_0", "LABEL_1"});
  CHECK(refusal(R"({"num_labels": -2})").starts_with("c.json: num_labels: expected an integer in [0, "));
}

TEST_CASE("names of classes that are whole numbers are their text") {
  CHECK(parse(R"({"id2label": {"0": 0, "1": -1, "2": "2"}})").labels == std::vector<std::string>{"0", "-1", "2"});
  CHECK(refusal(R"({"id2label": {"0": 1, "1": "1"}})") ==
        "c.json: id2label: expected different names, got \"1\" twice");
}

TEST_CASE("models that are computed in another way are refused") {
  CHECK(refusal(R"({"model_type": "roberta"})") == "c.json: model_type: expected \"bert\", got \"roberta\"");
  CHECK(refusal(R"({"position_embedding_type": "relative_key"})") ==
        "c.json: position_embedding_type: expected \"absolute\", got \"relative_key\"");
  CHECK(refusal(R"({"is_decoder": true})") == "c.json: is_decoder: expected false, got true");
  CHECK(refusal(R"({"add_cross_attention": true})") == "c.json: add_cross_attention: expected false, got true");
  CHECK(refusal(R"({"model_type": "bert", "is_decoder": false})") == "");
}

TEST_CASE("an unknown key of the user's own file names the nearest one") {
  CHECK(refusal(R"({"hiden_size": 768})", Unknown::refuse) ==
        "c.json: unknown key \"hiden_size\"; did you mean \"hidden_size\"?");
  CHECK(refusal(R"({"num_atention_heads": 12})", Unknown::refuse) ==
        "c.json: unknown key \"num_atention_heads\"; did you mean \"num_attention_heads\"?");
  CHECK(refusal(R"({"colour": 1})", Unknown::refuse) ==
        "c.json: unknown key \"colour\"; hint: keys that begin with _ are left alone");
  CHECK(refusal(R"({"transformers_version": "5", "pooler_type": "x", "_comment": 1})", Unknown::refuse) == "");
  CHECK(parse(R"({"hiden_size": 768})").others == R"({"hiden_size":768})");  // of a model directory it is kept
}

TEST_CASE("architectures that are no list of names are refused, and null is none") {
  const std::string expected = "c.json: architectures: expected a list of names, got ";
  CHECK(refusal(R"({"architectures": "BertModel"})") == expected + "\"BertModel\"");
  CHECK(refusal(R"({"architectures": ["BertModel", 5]})") == expected + "[\"BertModel\",5]");
  CHECK(parse(R"({"architectures": null})").architectures.empty());
}

TEST_CASE("a list of more architectures than any model has is refused") {
  const auto text = [](std::size_t names) {
    return io::json_text({{"architectures", std::vector<std::string>(names, "BertModel")}});
  };
  CHECK(parse(text(100)).architectures.size() == 100);
  CHECK(refusal(text(101)).starts_with("c.json: architectures: expected at most 100 names, got "));
}

TEST_CASE("what is no JSON object says the line") {
  CHECK(refusal("{\n\"a\": 1,\n}") == "c.json:3: expected JSON, got a syntax error at byte 11: unexpected '}'");
  CHECK(refusal("") == "c.json: expected JSON, got a syntax error at byte 1: unexpected end of input");
  CHECK(refusal("[]") == "c.json: expected a JSON object, got []");
  CHECK(refusal("{\"x\": " + std::string(100'000, '[') + std::string(100'000, ']') + "}") ==
        "c.json: expected at most 64 levels of values in each other, got more");
  CHECK(refusal("\xff\xfe").starts_with("c.json: expected JSON, got a syntax error"));
  CHECK(refusal("{\"layer_norm_eps\": 1e999}") == "c.json: expected JSON, got a number that no double can hold");
  const support::TemporaryDirectory directory;
  CHECK_THROWS_WITH_AS(read_config_file(directory / "none.json", Unknown::keep),
                       ((directory / "none.json").string() + ": expected a model configuration, got no file").c_str(),
                       Error);
}

TEST_CASE("labels are read and written in a time that grows with their number and not with its square") {
  const double growth = support::growth_by_four(10'000, [](int labels) {
    Config c;
    for (int i = 0; i < labels; ++i) c.labels.push_back("label " + std::to_string(i));
    const std::string text = config_text(c);
    CHECK(config_text(parse(text)) == text);
  });
  CHECK(growth < 8);
}

TEST_CASE("no dropout before the classifier is another thing than none that is given") {
  const Config none = parse(R"({"hidden_dropout_prob": 0.25, "classifier_dropout": null})"),
               zero = parse(R"({"hidden_dropout_prob": 0.25, "classifier_dropout": 0})");
  CHECK(none.head_dropout() == 0.25);
  CHECK(zero.head_dropout() == 0);
  CHECK(parse(config_text(none)).head_dropout() == 0.25);
  CHECK(parse(config_text(zero)).head_dropout() == 0);
}

TEST_CASE("labels of null are none, and a token of padding with another number keeps it") {
  CHECK(parse(R"({"id2label": null, "label2id": null, "num_labels": null})").labels.empty());
  CHECK(nlohmann::json::parse(config_text(parse(R"({"pad_token_id": 3})"))).at("pad_token_id") == 3);
  CHECK(nlohmann::json::parse(config_text(parse("{}"))).at("pad_token_id") == 0);
}

TEST_CASE("a model type of null is written as bert") {
  CHECK(nlohmann::json::parse(config_text(parse(R"({"model_type": null})"))).at("model_type") == "bert");
}

TEST_CASE("a key that a configuration has twice is refused") {
  CHECK(refusal(R"({"hidden_size": 8, "hidden_size": 16})") == "c.json: \"hidden_size\": expected once, got it twice");
}

TEST_CASE("a written configuration does not say where another program had its model from") {
  const support::TemporaryDirectory directory;
  const Config config = parse(R"({"_name_or_path": "someone/model", "transformers_version": "4.8.2", "_kept": 1})");
  write_configuration(io::Files::system(), directory / "",
                      {.config = config, .vocabulary = "[PAD]\n", .tokenizer = {}});
  CHECK(read_config_file(directory / "config.json", UnknownKeys::refuse).others == R"({"pad_token_id":0,"_kept":1})");
}

TEST_CASE("a directory of models is refused with the newest of those that are whole") {
  const support::TemporaryDirectory directory;
  const auto hint = [&](const std::string& name) {
    return "; hint: " + (directory / "hub" / name).string() + " has one";
  };
  const auto of_all = [&] { return support::refusal(Failure::model, [&] { read_config(directory / "hub"); }); };
  const auto start = std::filesystem::file_time_type::clock::now();
  const auto add = [&](const std::string& name, int minute) {
    std::filesystem::create_directories(directory / "hub" / name);
    support::write_text(directory / "hub" / name / "config.json", "{}");
    support::write_text(directory / "hub" / name / "model.safetensors", "");
    std::filesystem::last_write_time(directory / "hub" / name / "config.json", start + std::chrono::minutes(minute));
  };
  add("snapshots/4f2a", 0);
  CHECK(of_all().ends_with(hint("snapshots/4f2a")));
  add("checkpoint-9", 1);
  add("checkpoint-10", 2);
  add("checkpoint-11.tmp-4711", 3);
  add("out.tmp-node1.cluster.org-4711", 4);
  CHECK(of_all().ends_with(hint("checkpoint-10") + ", and 2 more beside it"));
  add("1_Pooling", 5);
  std::filesystem::remove(directory / "hub/1_Pooling/model.safetensors");
  CHECK(of_all().ends_with(hint("checkpoint-10") + ", and 2 more beside it"));
}
