// Models opened: for which head, with which labels, and what they lack.
#include <doctest/doctest.h>

#include "bert/inference/opened.h"
#include "support/refusal.h"
#include "support/small_heads.h"

using namespace bertrand;
using inference::Head;
using support::ask;
using support::open;
using support::refusal;

TEST_CASE("a model whose config.json names no labels has the two of transformers") {
  const support::TemporaryDirectory directory;
  support::write_small_head<bert::ForSequenceClassification>(directory / "model",
                                                             {.architecture = "BertForSequenceClassification"}, 2);
  CHECK(ask(*open(directory / "model", Head::classify), {{"text", "red"}}).at("scores").contains("LABEL_1"));
}

TEST_CASE("a model without labels has as many classes as its weights, and a file of weights is enough to say it") {
  const support::TemporaryDirectory directory;
  support::write_small_head<bert::ForSequenceClassification>(directory / "texts", {.architecture = ""}, 3);
  support::write_small_head<bert::ForTokenClassification>(directory / "words", {.architecture = ""}, 5);
  for (const char* model : {"texts", "texts/model.safetensors"})
    CHECK(ask(*open(directory / model, Head::classify), {{"text", "red"}}).at("scores").size() == 3);
  const auto labeller = open(directory / "words", Head::tokens);
  const auto outputs = labeller->run(labeller->encode({{"text", "red"}}, "here").sequences);
  CHECK(outputs[0].width == 5);
}

TEST_CASE("texts, pairs and choices are cut where tokenizer_config.json says, if no length is given") {
  const support::TemporaryDirectory directory;
  support::write_small_classifier(directory / "texts");
  support::write_small_head<bert::ForSequenceClassification>(directory / "choices",
                                                             {.architecture = "BertForMultipleChoice"}, Dim{1});
  const std::string many = "red fish two birds red fish two birds";
  for (const auto& [model, head, request] :
       {std::tuple("texts", Head::classify, io::Json{{"text", many}}),
        std::tuple("choices", Head::choose, io::Json{{"text", many}, {"choices", {many, many}}})}) {
    CAPTURE(model);
    const auto tokens = [&, model = model, head = head, request = request](int length) {
      const auto backend = open_cpu({.threads = 1});
      const auto predictor =
          inference::open({.directory = directory / model, .backend = *backend}, head, {.max_seq_length = length});
      return predictor->encode(request, "").sequences[0].token_ids.size();
    };
    const std::size_t whole = tokens(0);
    CHECK(whole > 10);
    support::write_text(directory / model / "tokenizer_config.json", R"({"model_max_length": 7})");
    CHECK(tokens(0) == 7);
    CHECK(tokens(10) == 10);
    support::write_text(directory / model / "tokenizer_config.json", R"({"model_max_length": 1000000000000})");
    CHECK(tokens(0) == whole);
  }
}

TEST_CASE("a problem type that is none is refused before a score is of the wrong kind") {
  const support::TemporaryDirectory directory;
  support::write_small_head<bert::ForSequenceClassification>(
      directory / "model",
      {.architecture = "BertForSequenceClassification", .labels = {"a", "b"}, .problem_type = "multi_label"}, 2);
  CHECK(refusal(Failure::model, [&] { open(directory / "model", Head::classify); }) ==
        (directory / "model/config.json").string() +
            ": problem_type: expected single_label_classification, regression or multi_label_classification, got "
            "\"multi_label\"");
}

TEST_CASE("a choice among one label is refused before every text has it with certainty") {
  const support::TemporaryDirectory directory;
  support::write_small_head<bert::ForSequenceClassification>(
      directory / "model",
      {.architecture = "BertForSequenceClassification", .labels = {"a"}, .problem_type = "single_label_classification"},
      1);
  CHECK(refusal(Failure::model, [&] { open(directory / "model", Head::classify); }) ==
        (directory / "model/config.json").string() +
            ": problem_type: expected two labels or more for single_label_classification, got one; hint: regression "
            "gives its output as it is, multi_label_classification a probability");
}

TEST_CASE("a model says what it is for and one of another kind is refused with the known ones") {
  CHECK(inference::head_of({.architectures = {"X", "BertModel"}}, "m") == Head::embed);
  CHECK(inference::head_of({.architectures = {"BertForMaskedLM"}}, "m") == Head::fill_mask);
  CHECK(
      refusal(Failure::model, [] { inference::head_of({.architectures = {"BertForNextSentencePrediction"}}, "m"); }) ==
      "m/config.json: architectures: expected one of BertForSequenceClassification, BertForMultipleChoice, "
      "BertForTokenClassification, "
      "BertForQuestionAnswering, BertForMaskedLM, BertForPreTraining, BertModel, got "
      "[\"BertForNextSentencePrediction\"]; "
      "hint: --task says what to do with the model");
  CHECK(refusal(Failure::model, [] { inference::head_of({}, "m"); }).find(", got none; hint: --task") !=
        std::string::npos);
}

TEST_CASE("a head that the weights lack is named with the file and the tensors") {
  const support::TemporaryDirectory directory;
  support::write_small_model(directory / "model");
  const std::string file = directory / "model/model.safetensors";
  CHECK(refusal(Failure::model, [&] { open(directory / "model", Head::fill_mask); }) ==
        file +
            ": expected the tensors that --task fill-mask needs, got none for cls.predictions.bias, "
            "cls.predictions.transform.dense.weight, cls.predictions.transform.dense.bias, "
            "cls.predictions.transform.LayerNorm.weight, cls.predictions.transform.LayerNorm.bias; hint: was it "
            "trained for that?");
  CHECK(refusal(Failure::model, [&] {
          open(directory / "model", Head::answer, {.windows = {.max_query_length = 4}});
        }).starts_with(file + ": expected the tensors that --task answer needs, got none for qa_outputs.weight, "));
}

TEST_CASE("weights of which no name is a model's are refused with one that is there, whatever the head") {
  const support::TemporaryDirectory directory;
  support::write_small_model(directory / "model");
  const std::string file = directory / "model/model.safetensors";
  std::string bytes = support::read_text(file);
  for (std::size_t at = 0; (at = bytes.find("\"bert.", at)) != std::string::npos;) bytes[at + 1] = 'x';
  support::write_text(file, bytes);
  for (const Head head : {Head::classify, Head::embed}) {
    const std::string refused = refusal(Failure::model, [&] { open(directory / "model", head); });
    CHECK(refused.starts_with(file + ": weights: expected every tensor of the model, got none for "));
    CHECK(refused.find("; hint: the names there are others, as \"xert.") != std::string::npos);
  }
}

TEST_CASE("options that the model cannot follow are refused") {
  const support::TemporaryDirectory directory;
  support::write_small_head<bert::ForQuestionAnswering>(directory / "model", {.architecture = ""});
  support::write_small_head<bert::ForQuestionAnswering>(directory / "one", {.architecture = "", .types = 1});
  CHECK(refusal(Failure::usage, [&] { open(directory / "model", Head::answer, {.max_seq_length = 25}); }) ==
        "--max-seq-length: expected at most 24, the model's positions, got 25");
  CHECK(refusal(Failure::usage, [&] {
          open(directory / "model", Head::answer, {.windows = {.max_query_length = 64}});
        }) == "--max-seq-length: expected more than --max-query-length 64 and 3, got 24");
  CHECK(refusal(Failure::model, [&] { open(directory / "one", Head::answer); }) ==
        (directory / "one").string() + ": type_vocab_size: expected 2 for pairs of texts, got 1");
}

TEST_CASE("a model without positions for a piece is refused as a model, whatever it is for") {
  for (const auto& [name, head] : inference::heads()) {
    CAPTURE(name);
    CHECK(refusal(Failure::model, [&] { inference::completed({}, {.max_position_embeddings = 2}, head, "m"); }) ==
          "m/config.json: max_position_embeddings: expected at least 3 to read a text, got 2");
    CHECK_NOTHROW(inference::completed({}, {.max_position_embeddings = 3}, head, "m"));
  }
}

TEST_CASE("a question has 64 tokens unless the window is too short for them, then half of it") {
  for (const auto& [positions, tokens] : {std::pair(512, 64), {68, 64}, {67, 32}, {24, 10}, {5, 1}})
    CHECK(
        inference::completed({}, {.max_position_embeddings = positions}, Head::answer, "m").windows.max_query_length ==
        tokens);
  CHECK(inference::completed({.max_seq_length = 24, .windows = {.max_query_length = 7}}, {}, Head::answer, "m")
            .windows.max_query_length == 7);
  const support::TemporaryDirectory directory;
  support::write_small_head<bert::ForQuestionAnswering>(directory / "model", {.architecture = ""});
  CHECK(ask(*open(directory / "model", Head::answer), {{"question", "red"}, {"context", "fish"}}).contains("answer"));
}

TEST_CASE("a sequence has as many tokens as the model has positions, but for answers 384 at most") {
  const auto tokens = [](Dim positions, Head head) {
    return inference::completed({}, {.max_position_embeddings = positions}, head, "m").max_seq_length;
  };
  CHECK(tokens(512, Head::classify) == 512);
  CHECK(tokens(512, Head::tokens) == 512);
  CHECK(tokens(512, Head::answer) == 384);
  CHECK(tokens(24, Head::answer) == 24);
}

TEST_CASE("a model whose encoder lacks tensors is refused, and that is no question of its task") {
  const support::TemporaryDirectory directory;
  support::write_small_classifier(directory / "model");
  io::Json config = io::read_json(directory / "model/config.json");
  config["num_hidden_layers"] = 2;
  support::write_text(directory / "model/config.json", io::json_text(config));
  const std::string message = refusal(Failure::model, [&] { open(directory / "model", Head::classify); });
  CHECK(message.find("bert.encoder.layer.1.") != std::string::npos);
  CHECK(message.find("--task") == std::string::npos);
}

TEST_CASE("a model whose tensors are not those of its configuration is refused before memory is taken") {
  const support::TemporaryDirectory directory;
  for (const auto& [key, value] : {std::pair("intermediate_size", 64), {"num_hidden_layers", 2}}) {
    CAPTURE(key);
    support::write_small_classifier(directory / "model");
    io::Json config = io::read_json(directory / "model/config.json");
    config[key] = value;
    support::write_text(directory / "model/config.json", io::json_text(config));
    const auto backend = open_cpu({.threads = 1});
    CHECK(refusal(Failure::model, [&] {
            inference::open({.directory = directory / "model", .backend = *backend}, Head::classify, {});
          }) != "");
    CHECK(backend->memory().peak == 0);
  }
}

TEST_CASE("any model gives vectors of texts, and one that classifies texts is refused as one that labels words") {
  const support::TemporaryDirectory directory;
  support::write_small_classifier(directory / "model");
  CHECK(ask(*open(directory / "model", Head::embed), {{"text", "red"}}).at("embedding").size() == 16);
  CHECK(refusal(Failure::model, [&] { open(directory / "model", Head::tokens); }) != "");
}

TEST_CASE("a model that is opened strictly has no tensor that its head does not use") {
  const support::TemporaryDirectory directory;
  support::write_small_classifier(directory / "model");
  const auto open_strictly = [&](Head head) {
    return inference::open({.directory = directory / "model", .backend = golden::cpu(), .strict = true}, head, {});
  };
  CHECK(ask(*open_strictly(Head::classify), {{"text", "red"}}).contains("label"));
  const std::string message = refusal(Failure::model, [&] { open_strictly(Head::embed); });
  CHECK(message.find(": --strict: expected every tensor to fit, got ") != std::string::npos);
  CHECK(message.find("classifier.weight") != std::string::npos);
}
