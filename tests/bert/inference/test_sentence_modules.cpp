// A directory of sentence-transformers: its files say how a text becomes a vector, and flags come before them.
#include <doctest/doctest.h>

#include "bert/directory/model_directory.h"
#include "bert/inference/open.h"
#include "bert/network/golden.h"
#include "support/faulty_files.h"
#include "support/refusal.h"
#include "support/small_model.h"

using namespace bertrand;
using inference::Head;
using inference::Options;
using inference::Pooling;
using support::refusal;

namespace {

constexpr const char* kModules =
    R"([{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
  {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
  {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}])";

/// A small model of 24 positions with those three modules.
struct Directory {
  support::TemporaryDirectory directory;

  Directory() {
    support::write_small_model(directory / "model");
    std::filesystem::create_directory(directory / "model/1_Pooling");
    write("modules.json", kModules);
    write("1_Pooling/config.json", R"({"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false})");
    write("sentence_bert_config.json", R"({"max_seq_length": 6, "do_lower_case": false})");
  }
  void write(const std::string& name, const std::string& text) const {
    support::write_text(directory / ("model/" + name), text);
  }
  std::vector<double> embedding(const Options& options) const {
    const auto predictor =
        inference::open({.directory = directory / "model", .backend = golden::cpu()}, Head::embed, options);
    const inference::Query query = predictor->encode({{"text", "red fish blue fish red fish blue fish"}}, "here");
    return inference::answer(query, predictor->run(query.sequences)).at("embedding");
  }
  std::string refused() const {
    return refusal(Failure::model, [&] { embedding({}); });
  }
};

}  // namespace

TEST_CASE("pooling, normalization and length are those of sentence-transformers' files") {
  const Directory model;
  CHECK(model.embedding({}) == model.embedding({.max_seq_length = 6, .pooling = Pooling::cls, .normalize = true}));
  model.write("1_Pooling/config.json", R"({"pooling_mode_mean_tokens": true})");
  CHECK(model.embedding({}) == model.embedding({.max_seq_length = 6, .pooling = Pooling::mean, .normalize = true}));
  std::filesystem::remove(model.directory / "model/modules.json");
  CHECK(model.embedding({}) == model.embedding({.max_seq_length = 6, .pooling = Pooling::mean}));
  std::filesystem::remove(model.directory / "model/sentence_bert_config.json");
  CHECK(model.embedding({}) == model.embedding({.max_seq_length = 24, .pooling = Pooling::mean}));
}

TEST_CASE("a pooling that sentence-transformers 6 wrote by its name comes before the flags of versions before") {
  const Directory model;
  const std::vector<double> cls = model.embedding({.pooling = Pooling::cls, .normalize = true});
  const std::vector<double> mean = model.embedding({.pooling = Pooling::mean, .normalize = true});
  for (const auto& [text, expected] :
       {std::pair(R"({"embedding_dimension": 16, "pooling_mode": "cls", "include_prompt": true})", &cls),
        {R"({"pooling_mode": ["cls"], "pooling_mode_mean_tokens": true})", &cls},
        {R"({"pooling_mode": "mean", "pooling_mode_cls_token": true})", &mean}}) {
    CAPTURE(text);
    model.write("1_Pooling/config.json", text);
    CHECK(model.embedding({}) == *expected);
  }
}

TEST_CASE("the length is model_max_length of tokenizer_config.json if sentence_bert_config.json has none") {
  const Directory model;
  const auto of_length = [&](int length) {
    return model.embedding({.max_seq_length = length, .pooling = Pooling::cls, .normalize = true});
  };
  model.write("tokenizer_config.json", R"({"do_lower_case": true, "model_max_length": 5})");
  CHECK(model.embedding({}) == of_length(6));
  model.write("sentence_bert_config.json", R"({"transformer_task": "feature-extraction"})");
  CHECK(model.embedding({}) == of_length(5));
  std::filesystem::remove(model.directory / "model/sentence_bert_config.json");
  CHECK(model.embedding({}) == of_length(5));
  for (const char* none : {"1000000000000000019884624838656", "25", "2", "null", "\"5\""}) {
    CAPTURE(none);
    model.write("tokenizer_config.json", fmt::format(R"({{"do_lower_case": true, "model_max_length": {}}})", none));
    CHECK(model.embedding({}) == of_length(24));
  }
}

TEST_CASE("flags come before sentence-transformers' files") {
  const Directory model;
  const std::vector<double> mean = model.embedding({.max_seq_length = 10, .pooling = Pooling::mean});
  model.write("modules.json", R"([{"type": "sentence_transformers.models.Dense", "path": "2_Dense"}])");
  CHECK(model.embedding({.max_seq_length = 10, .pooling = Pooling::mean}) == mean);
}

TEST_CASE("ids may be as many as the model has positions, whatever a text is cut to") {
  const Directory model;
  const std::vector<std::int32_t> ids(24, 5), types(24, 0);
  for (const auto& [options, accepted] : {std::pair(Options{}, true), {Options{.max_seq_length = 10}, false}}) {
    const auto predictor =
        inference::open({.directory = model.directory / "model", .backend = golden::cpu()}, Head::embed, options);
    const auto encode = [&] { predictor->encode_ids({.sequence = {.token_ids = ids, .token_types = types}}, "here"); };
    if (accepted) CHECK_NOTHROW(encode());
    else CHECK(refusal(Failure::input, encode) == "here: input_ids: expected 1 to 10 ids, got 24");
  }
}

TEST_CASE("modules that are not computed here are refused with the file that names them") {
  const Directory model;
  const std::string at = (model.directory / "model/").string();
  const std::string pooling = at + "1_Pooling/config.json: pooling_mode: expected one of \"mean\" and \"cls\", got ";
  for (const auto& [text, got] :
       {std::pair(R"({"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": true})", R"(["cls","mean"])"),
        {R"({"pooling_mode_mean_tokens": false, "pooling_mode_max_tokens": true})", R"(["max"])"},
        {R"({"pooling_mode_mean_tokens": false})", "none"},
        {R"({"word_embedding_dimension": 16})", "none"},
        {R"({"pooling_mode": "lasttoken", "pooling_mode_mean_tokens": true})", R"(["lasttoken"])"},
        {R"({"pooling_mode": ["mean", "cls"]})", R"(["mean","cls"])"},
        {R"({"pooling_mode": []})", "none"},
        {R"({"pooling_mode": null})", "[null]"}}) {
    model.write("1_Pooling/config.json", text);
    CHECK(model.refused() == pooling + got + "; hint: --pooling");
  }
  std::filesystem::remove_all(model.directory / "model/1_Pooling");
  CHECK(model.refused() ==
        at + "modules.json: expected " + at +
            "1_Pooling/config.json, got no such file; hint: copy the whole directory, or --pooling mean "
            "--normalize");
  CHECK(model.embedding({.pooling = Pooling::mean, .normalize = true}).size() == 16);
  model.write("modules.json", R"([{"type": "sentence_transformers.models.Dense", "path": "2_Dense"}])");
  CHECK(model.refused() == at +
                               "modules.json: [0].type: expected Transformer, Pooling or Normalize, which are computed "
                               "here, got \"sentence_transformers.models.Dense\"");
  model.write("modules.json", R"({"idx": 0})");
  CHECK(model.refused().starts_with(at + "modules.json: expected a list of modules, got "));
}

TEST_CASE("texts that sentence-transformers lower-cases are refused only if the tokenizer keeps their case") {
  const Directory model;
  const std::vector<double> embedding = model.embedding({});
  model.write("sentence_bert_config.json", R"({"max_seq_length": 6, "do_lower_case": true})");
  CHECK(model.embedding({}) == embedding);
  model.write("tokenizer_config.json", R"({"do_lower_case": false})");
  const std::string refused = (model.directory / "model/sentence_bert_config.json").string() +
                              ": do_lower_case: expected false, as the tokenizer keeps the case of a text, got true; "
                              "hint: lower-case your texts, and write false there";
  CHECK(model.refused() == refused);
  const Options given{.max_seq_length = 6, .pooling = Pooling::cls};
  CHECK(refusal(Failure::model, [&] { model.embedding(given); }) == refused);
}

TEST_CASE("modules are an encoder beside the file, its pooling, and only then a normalization") {
  const Directory model;
  const std::string file = (model.directory / "model/modules.json").string();
  const auto refused = [&](const std::string& modules) {
    model.write("modules.json", modules);
    const std::string line = model.refused();
    return line.starts_with(file) ? line.substr(file.size()) : line;
  };
  const std::string encoder = R"({"path": "", "type": "sentence_transformers.models.Transformer"})",
                    pooling = R"({"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"})",
                    normalize = R"({"path": "2_Normalize", "type": "sentence_transformers.models.Normalize"})";
  CHECK(refused("[" + encoder + "," + pooling + "]") == "");
  CHECK(refused(R"([{"path": "1_Pooling/", "type": "sentence_transformers.models.Pooling"}])") == "");
  CHECK(refused(R"([{"type": "sentence_transformers.models.Pooling"}])") ==
        ": [0].path: expected the directory of the pooling, got none");
  CHECK(refused(R"([{"path": "/", "type": "sentence_transformers.models.Pooling"}])") ==
        ": [0].path: expected a directory beside it, got \"/\"");
  CHECK(refused("[" + encoder + "]") == ": expected a module Pooling, got none; hint: --pooling");
  CHECK(refused("[" + encoder + "," + normalize + "," + pooling + "]")
            .starts_with(": [1].type: expected Pooling first, which makes what is normalized, got "));
  CHECK(refused(R"([{"path": "0_Transformer", "type": "sentence_transformers.models.Transformer"},)" + pooling + "]") ==
        ": [0].path: expected the encoder beside the file, got \"0_Transformer\"; hint: that directory is a model by "
        "itself, with --pooling");
}

TEST_CASE("a model that has a prompt put before each text is refused, unless the prompt is empty") {
  const Directory model;
  const char* name = "config_sentence_transformers.json";
  for (const char* none : {R"({"prompts": {"query": "query: "}, "default_prompt_name": null})",
                           R"({"prompts": {"query": "query: ", "document": ""}, "default_prompt_name": "document"})"}) {
    model.write(name, none);
    CHECK(model.refused() == "");
  }
  model.write(name, R"({"prompts": {"query": "query: "}, "default_prompt_name": "query"})");
  CHECK(model.refused() == (model.directory / "model" / name).string() +
                               ": default_prompt_name: expected none, as no prompt is added here, got \"query\"; hint: "
                               "put it before your texts and give --pooling");
  CHECK(model.embedding({.pooling = Pooling::mean}).size() == 16);
}

TEST_CASE("a model whose vectors are to be cut is refused, unless --pooling says that somebody knows of it") {
  const Directory model;
  const char* name = "config_sentence_transformers.json";
  for (const char* whole : {R"({"truncate_dim": null})", R"({"truncate_dim": 16})", R"({"truncate_dim": 17})"}) {
    model.write(name, whole);
    CHECK(model.refused() == "");
  }
  model.write(name, R"({"truncate_dim": 8})");
  CHECK(model.refused() == (model.directory / "model" / name).string() +
                               ": truncate_dim: expected null or 16, as vectors are whole here, got 8; hint: give "
                               "--pooling, and keep the first 8 numbers of a vector");
  CHECK(model.embedding({.pooling = Pooling::mean}).size() == 16);
}

TEST_CASE("no module reads a file outside the directory of the model") {
  const Directory model;
  support::write_text(model.directory / "config.json", R"({"pooling_mode_mean_tokens": true})");
  for (const std::string& path : {std::string(".."), (model.directory / "").string(), std::string("1_Pooling/../..")}) {
    model.write("modules.json", R"([{"type": "sentence_transformers.models.Pooling", "path": ")" + path + "\"}]");
    CHECK(model.refused().starts_with((model.directory / "model/modules.json").string() +
                                      ": [0].path: expected a directory beside it, got \""));
  }
}

TEST_CASE("after a power failure the copied files of a module are whole, those in its own directory too") {
  const Directory model;
  const support::TemporaryDirectory disk, after;
  support::RecordingFiles files(disk / "");
  files.make_directory(disk / "copy");
  bert::copy_sentence_files(files, model.directory / "model", disk / "copy");
  files.sync_directory(disk / "copy");
  files.sync_directory(disk / "");
  files.restore(files.calls(), support::Lost::everything, after / "");
  for (const std::string file : {"modules.json", "1_Pooling/config.json"})
    CHECK(support::read_text(after / ("copy/" + file)) == support::read_text(model.directory / ("model/" + file)));
}
