// Requests of every head: what they may hold, what they become, and what is refused.
#include <doctest/doctest.h>

#include <set>

#include "bert/inference/opened.h"
#include "bert/text/python_text.h"
#include "support/refusal.h"
#include "support/small_heads.h"

using namespace bertrand;
using inference::Head;
using support::ask;
using support::open;
using support::refusal;
using support::refused;

namespace {

using Ids = std::vector<std::int32_t>;

}  // namespace

TEST_CASE("a text or a pair becomes the classifier's input") {
  const support::TemporaryDirectory directory;
  support::write_small_classifier(directory / "model");
  const auto predictor = open(directory / "model", Head::classify);
  CHECK(predictor->request("red fish", "t:1") == io::Json{{"text", "red fish"}});
  CHECK(predictor->request("red ||| fish ||| bird", "t:1") ==
        io::Json{{"text", "red ||| fish"}, {"text_pair", "bird"}});
  CHECK(predictor->encode({{"text", "red fish"}, {"id", 7}}, "").sequences[0].token_ids == Ids{2, 5, 8, 3});
  CHECK(predictor->encode({{"text", "red"}, {"text_pair", nullptr}}, "").sequences[0].token_ids == Ids{2, 5, 3});
  const bert::Sequence pair = predictor->encode({{"text", "red"}, {"text_pair", "birds"}}, "").sequences[0];
  CHECK(pair.token_ids == Ids{2, 5, 3, 9, 13, 3});
  CHECK(pair.token_types == Ids{0, 0, 0, 1, 1, 1});
  const auto is_cut = [&](int words, int words_of_pair) {  // of a model of 24 positions
    std::string text, other;
    for (int i = 0; i < words; ++i) text += "red ";
    for (int i = 0; i < words_of_pair; ++i) other += "fish ";
    return predictor->encode({{"text", text}, {"text_pair", other.empty() ? io::Json() : io::Json(other)}}, "").cut;
  };
  CHECK_FALSE(is_cut(22, 0));
  CHECK(is_cut(23, 0));
  CHECK_FALSE(is_cut(10, 11));
  CHECK(is_cut(11, 11));

  CHECK(refused(*predictor, {{"txt", "red"}}) == "t:3: text: expected a string, got none");
  CHECK(refused(*predictor, {{"text", 5}}) == "t:3: text: expected a string, got 5");
  CHECK(refused(*predictor, {{"text", " \t"}}) == "t:3: text: expected at least one token, got none");
  CHECK(refused(*predictor, {{"text", "red"}, {"text_pair", ""}}) ==
        "t:3: text_pair: expected at least one token, got none");
  CHECK(refused(*predictor, {{"text", "red"}, {"text_pair", {"fish"}}}) ==
        "t:3: text_pair: expected a string, got [\"fish\"]");
  CHECK(refused(*predictor, {"red"}) == "t:3: expected a JSON object, got [\"red\"]");
}

TEST_CASE("classes have shares and labels have probabilities and a score is a number") {
  const support::TemporaryDirectory directory;
  support::write_small_classifier(directory / "model");
  const io::Json one = ask(*open(directory / "model", Head::classify), {{"text", "red fish"}});
  double sum = 0, most = 0;
  for (const auto& [label, score] : one.at("scores").items())
    sum += score.get<double>(), most = std::max<double>(most, score);
  CHECK(sum == doctest::Approx(1));
  CHECK(one.at("score") == most);
  CHECK(one.at("scores").at(one.at("label").get<std::string>()) == most);

  using Classifier = bert::ForSequenceClassification;
  const std::string architecture = "BertForSequenceClassification";
  support::write_small_head<Classifier>(
      directory / "multi",
      {.architecture = architecture, .labels = {"a", "b", "c"}, .problem_type = "multi_label_classification"}, 3);
  const io::Json several = ask(*open(directory / "multi", Head::classify), {{"text", "red fish"}});
  std::vector<std::string> likely;
  for (const auto& [label, score] : several.at("scores").items())
    if (score.get<double>() >= 0.5) likely.push_back(label);
  CHECK(several.at("labels") == likely);
  const auto labels = open(directory / "multi", Head::classify);
  const inference::Outputs even{.width = 3, .values = {0, -1, 1}};  // a label holds from a half on
  CHECK(inference::answer(labels->encode({{"text", "red"}}, ""), std::vector{even}).at("labels") == io::Json{"a", "c"});

  support::write_small_head<Classifier>(
      directory / "number", {.architecture = architecture, .labels = {"LABEL_0"}, .problem_type = "regression"}, 1);
  const auto predictor = open(directory / "number", Head::classify);
  const inference::Query query = predictor->encode({{"text", "red fish"}}, "");
  const auto outputs = predictor->run(query.sequences);
  const io::Json number = inference::answer(query, outputs);
  CHECK(number.at("score").get<float>() == outputs[0].values[0]);
  CHECK(io::json_text(number.at("score")).size() <= 12);  // digits of an f32
  CHECK(number.at("label") == "LABEL_0");
}

TEST_CASE("one output that is not said to be a number is the probability of its label, as in transformers") {
  const support::TemporaryDirectory directory;
  const auto score = [&](const std::string& problem_type) {
    support::write_small_head<bert::ForSequenceClassification>(
        directory / "model",
        {.architecture = "BertForSequenceClassification", .labels = {"yes"}, .problem_type = problem_type}, 1);
    return ask(*open(directory / "model", Head::classify), {{"text", "red fish"}})["scores"]["yes"].get<double>();
  };
  CHECK(score("") == doctest::Approx(1 / (1 + std::exp(-score("regression")))));
}

TEST_CASE("an answer has as many candidates as are asked for, and scores are shares of at least twenty") {
  const support::TemporaryDirectory directory;
  support::write_small_head<bert::ForQuestionAnswering>(directory / "model",
                                                        {.architecture = "BertForQuestionAnswering"});
  std::string context;  // of 16 words, which have 136 candidates, in a window of 20 tokens
  for (int i = 0; i < 8; ++i) context += "red fish ";
  const auto n_best = [&](int top_k) {
    const auto predictor =
        open(directory / "model", Head::answer, {.top_k = top_k, .windows = {.doc_stride = 8, .max_query_length = 4}});
    return ask(*predictor, {{"question", "bird"}, {"context", context}}).at("n_best");
  };
  const auto shares = [](const io::Json& candidates) {
    double sum = 0;
    for (const io::Json& candidate : candidates) sum += candidate.at("score").get<double>();
    return sum;
  };
  const io::Json few = n_best(5), usual = n_best(20), many = n_best(50);
  CHECK(few.size() == 5);
  REQUIRE(usual.size() == 20);
  REQUIRE(many.size() == 50);
  CHECK(shares(usual) == doctest::Approx(1));
  CHECK(shares(many) == doctest::Approx(1));
  for (std::size_t i = 0; i < 20; ++i) {
    if (i < 5) CHECK(few[i] == usual[i]);
    for (const char* const place : {"start", "end"}) CHECK(many[i].at(place) == usual[i].at(place));
  }
}

TEST_CASE("every [MASK] of a text is filled and no other special token is literal") {
  const support::TemporaryDirectory directory;
  support::write_small_head<bert::ForPretraining>(directory / "model", {.architecture = "BertForPreTraining"});
  const auto predictor = open(directory / "model", Head::fill_mask, {.max_seq_length = 8, .top_k = 3});
  const inference::Query query = predictor->encode({{"text", "réd [MASK] fish[MASK]"}}, "");
  CHECK(query.sequences[0].token_ids == Ids{2, 5, 4, 8, 4, 3});
  CHECK_FALSE(query.cut);
  const io::Json masks = inference::answer(query, predictor->run(query.sequences)).at("masks");
  REQUIRE(masks.size() == 2);
  CHECK(masks[0].at("position") == 2);
  CHECK(masks[0].at("start") == 4);  // é is one code point
  CHECK(masks[0].at("end") == 10);
  CHECK(masks[1].at("position") == 4);
  CHECK(masks[1].at("start") == 15);
  CHECK(masks[0].at("predictions").size() == 3);
  CHECK(masks[0].at("predictions")[0].at("score") >= masks[0].at("predictions")[1].at("score"));
  CHECK(predictor->encode({{"text", "[SEP] [MASK]"}}, "").sequences[0].token_ids == Ids{2, 1, 1, 1, 4, 3});

  CHECK(refused(*predictor, {{"text", "red fish"}}) == "t:3: text: expected [MASK], got none");
  CHECK(refused(*predictor, {{"text", ""}}) == "t:3: text: expected [MASK], got none");
  CHECK(refused(*predictor, {{"text", "red red red red red red [MASK]"}}) ==
        "t:3: text: expected [MASK] among the first 6 tokens, got it as token 7; hint: a shorter text");
  CHECK(predictor->encode({{"text", "red red red red red [MASK] red"}}, "").cut);
  const auto all = open(directory / "model", Head::fill_mask, {.top_k = 100});
  CHECK(ask(*all, {{"text", "[MASK]"}})["masks"][0]["predictions"].size() == 15);  // there are no more words
}

TEST_CASE("an answer says where it stands in code points and a long context has windows") {
  const support::TemporaryDirectory directory;
  support::write_small_head<bert::ForQuestionAnswering>(directory / "model",
                                                        {.architecture = "BertForQuestionAnswering"});
  const auto predictor = open(directory / "model", Head::answer,
                              {.max_seq_length = 12, .windows = {.doc_stride = 3, .max_query_length = 4}});
  CHECK(predictor->request("the fish ||| a ||| b", "t:1") ==
        io::Json{{"question", "the fish"}, {"context", "a ||| b"}});
  CHECK(refusal(Failure::input, [&] { predictor->request("the fish", "t:1"); }) ==
        "t:1: expected question ||| context, got no |||");
  const std::string context = "Réd   fish, gréen\tbirds. one two blue fishs the bird red green";
  const inference::Query query = predictor->encode({{"question", "the fish"}, {"context", context}}, "");
  CHECK(query.sequences.size() == 4);  // of 7 of 16 pieces
  const io::Json answer = inference::answer(query, predictor->run(query.sequences));
  CHECK(answer.at("answer") == answer.at("n_best")[0].at("answer"));
  CHECK(answer.at("n_best").size() == 5);
  for (const io::Json& one : answer.at("n_best")) {
    const std::size_t start = one.at("start"), end = one.at("end");
    CHECK(text::to_utf8(text::to_code_points(context).substr(start, end - start)) == one.at("answer"));
  }
  // White space that the script does not know, and words that stand there twice.
  const std::string spaces = "\u3000fish/fish\u00A0birds";
  std::set<std::pair<std::size_t, std::size_t>> places;
  const io::Json of_spaces = ask(*predictor, {{"question", "the"}, {"context", spaces}});
  for (const io::Json& one : of_spaces.at("n_best")) {
    const std::size_t start = one.at("start"), end = one.at("end");
    CHECK(text::to_utf8(text::to_code_points(spaces).substr(start, end - start)) == one.at("answer"));
    CHECK(std::set<std::size_t>{1, 5, 6, 11, 15}.contains(start));
    CHECK(std::set<std::size_t>{5, 6, 10, 15, 16}.contains(end));
    places.emplace(start, end);
  }
  CHECK(places.size() == 5);
  CHECK_FALSE(predictor->encode({{"question", "the red fish one"}, {"context", context}}, "").cut);
  CHECK(predictor->encode({{"question", "the red fish one two"}, {"context", context}}, "").cut);

  CHECK(refused(*predictor, {{"question", "the"}, {"context", ""}}) ==
        "t:3: context: expected at least one token, got none");
  CHECK(refused(*predictor, {{"question", " "}, {"context", "red"}}) ==
        "t:3: question: expected at least one token, got none");
  CHECK(refused(*predictor, {{"question", "red"}}) == "t:3: context: expected a string, got none");
}

TEST_CASE("an embedding may be of length 1 and a long text is cut") {
  const support::TemporaryDirectory directory;
  support::write_small_model(directory / "model");
  const auto predictor = open(directory / "model", Head::embed, {.max_seq_length = 5, .normalize = true});
  const std::vector<double> embedding = ask(*predictor, {{"text", "red fish"}}).at("embedding");
  double squares = 0;
  for (const double x : embedding) squares += x * x;
  CHECK(embedding.size() == 16);
  CHECK(squares == doctest::Approx(1));
  CHECK_FALSE(predictor->encode({{"text", "red red red"}}, "").cut);
  CHECK(predictor->encode({{"text", "red red red red"}}, "").cut);
  const auto rows = [&](inference::Pooling pooling) {
    const auto one = open(directory / "model", Head::embed, {.pooling = pooling});
    return one->run(std::vector(2, one->encode({{"text", "red fish"}}, "").sequences[0]));
  };
  const auto cls = rows(inference::Pooling::cls), pooler = rows(inference::Pooling::pooler);
  for (const auto& outputs : {cls, pooler})
    for (const inference::Outputs& one : outputs) CHECK(one.rows() == 1);
  CHECK(cls[0].values != pooler[0].values);
}

TEST_CASE("the embedding of a pair is that of both texts with [SEP] between them") {
  const support::TemporaryDirectory directory;
  support::write_small_model(directory / "model");
  const auto predictor = open(directory / "model", Head::embed, {.max_seq_length = 7});
  const inference::Query pair = predictor->encode({{"text", "red"}, {"text_pair", "birds"}}, "");
  CHECK(pair.sequences[0].token_ids == Ids{2, 5, 3, 9, 13, 3});
  CHECK(pair.sequences[0].token_types == Ids{0, 0, 0, 1, 1, 1});
  CHECK_FALSE(pair.cut);
  const inference::Query cut = predictor->encode({{"text", "red fish"}, {"text_pair", "the blue birds"}}, "");
  CHECK(cut.sequences[0].token_ids == Ids{2, 5, 8, 3, 12, 7, 3});
  CHECK(cut.cut);
  CHECK(predictor->encode({{"text", "red"}, {"text_pair", nullptr}}, "").sequences[0].token_ids == Ids{2, 5, 3});
  CHECK(refused(*predictor, {{"text", "red"}, {"text_pair", 5}}) == "t:3: text_pair: expected a string, got 5");
  const auto shortest = open(directory / "model", Head::embed, {.max_seq_length = 5});
  CHECK(shortest->encode({{"text", "red fish"}, {"text_pair", "birds"}}, "").sequences[0].token_ids ==
        Ids{2, 5, 3, 9, 3});
  CHECK(refused(*open(directory / "model", Head::embed, {.max_seq_length = 4}),
                {{"text", "red"}, {"text_pair", "birds"}}) ==
        "t:3: text_pair: expected none, since a pair needs 5 tokens and 4 are read");
}

TEST_CASE("a pair is refused by a model that knows one text alone") {
  const support::TemporaryDirectory directory;
  support::write_small_head<bert::ForSequenceClassification>(
      directory / "model", {.architecture = "BertForSequenceClassification", .labels = {"a", "b"}, .types = 1}, 2);
  const auto predictor = open(directory / "model", Head::classify);
  CHECK(ask(*predictor, {{"text", "red"}, {"text_pair", nullptr}}).contains("label"));
  CHECK(refused(*predictor, {{"text", "red"}, {"text_pair", "fish"}}) ==
        "t:3: text_pair: expected none, since the model has one token type");
}

TEST_CASE("an answer in the company of others has the bits that it has alone") {
  const support::TemporaryDirectory directory;
  support::write_small_classifier(directory / "classify");
  support::write_small_model(directory / "embed");
  support::write_small_head<bert::ForQuestionAnswering>(directory / "answer", {.architecture = ""});
  support::write_small_labeller(directory / "tokens", {"O", "B-A"});
  for (const auto& head : inference::heads()) {
    if (!std::filesystem::exists(directory / head.first)) continue;
    CAPTURE(head.first);
    const auto predictor = open(directory / head.first, head.second,
                                {.max_seq_length = 14, .windows = {.doc_stride = 2, .max_query_length = 4}});
    std::vector<io::Json> requests, together;
    std::string text;
    for (int i = 0; i < 12; ++i) {
      text += std::array{" red", " fish", " the", " birds"}[static_cast<std::size_t>(i % 4)];
      requests.push_back({{"text", text}, {"question", "the bird"}, {"context", text}});
    }
    together.resize(requests.size());
    std::vector<inference::Query> queries;
    for (const io::Json& request : requests) queries.push_back(predictor->encode(request, "here"));
    inference::run_all(*predictor, queries, 30, [&](std::size_t i, std::span<const inference::Outputs> outputs) {
      together[i] = inference::answer(queries[i], outputs);
    });
    for (std::size_t i = 0; i < requests.size(); ++i) CHECK(together[i] == ask(*predictor, requests[i]));
  }
}

TEST_CASE("ids are answered as the text that they stand for, padding after them by name, and others are refused") {
  const support::TemporaryDirectory directory;
  const auto ask_ids = [](const inference::Predictor& predictor, const Ids& ids, std::size_t padding = 0) {
    const inference::Query query = predictor.encode_ids(
        {.sequence = {.token_ids = ids, .token_types = Ids(ids.size(), 0)}, .padding = padding}, "here");
    return inference::answer(query, predictor.run(query.sequences));
  };
  support::write_small_classifier(directory / "model");
  const auto classifier = open(directory / "model", Head::classify);
  const io::Json shares = ask_ids(*classifier, {2, 5, 8, 3}), answer = ask(*classifier, {{"text", "red fish"}});
  REQUIRE(shares.at("probabilities").size() == 3);
  CHECK(shares["probabilities"][0] == answer["scores"]["fish"]);
  CHECK(classifier->token(8) == "fish");
  const io::Json raw = ask(*classifier, {{"text", "red fish"}, {"raw_scores", true}});
  CHECK(raw["label"] == answer["label"]);
  CHECK(raw["scores"] != answer["scores"]);
  support::write_small_labeller(directory / "words", {"O", "B-X"});
  const auto labeller = open(directory / "words", Head::tokens);
  io::Json rows = ask_ids(*labeller, {2, 5, 3})["probabilities"];
  CHECK(rows.size() == 3);
  rows.insert(rows.end(), 2, {0.0, 0.0});
  CHECK(ask_ids(*labeller, {2, 5, 3}, 2)["probabilities"] == rows);
  support::write_small_head<bert::ForQuestionAnswering>(directory / "spans",
                                                        {.architecture = "BertForQuestionAnswering"});
  const auto answerer = open(directory / "spans", Head::answer, {.windows = {.doc_stride = 2, .max_query_length = 4}});
  io::Json spans = ask_ids(*answerer, {2, 5, 3, 8, 3});
  CHECK(spans["start_logits"].size() == 5);
  CHECK(spans["end_logits"].size() == 5);
  for (io::Json& logits : spans) logits.push_back(-10000.0);
  CHECK(ask_ids(*answerer, {2, 5, 3, 8, 3}, 1) == spans);
  support::write_small_head<bert::ForPretraining>(directory / "masks", {.architecture = "BertForPreTraining"});
  const auto filler = open(directory / "masks", Head::fill_mask);
  const io::Json mask = ask_ids(*filler, {2, 5, 4, 3})["masks"][0];
  CHECK(mask["position"] == 2);
  CHECK(mask["predictions"] == ask(*filler, {{"text", "red [MASK]"}})["masks"][0]["predictions"]);
  CHECK_FALSE(mask.contains("start"));

  const auto bad = [&](const inference::Predictor& predictor, const bert::Sequence& sequence) {
    return refusal(Failure::input, [&] { predictor.encode_ids({.sequence = sequence}, "here"); });
  };
  CHECK(bad(*filler, {{2, 5, 3}, {0, 0, 0}}) == "here: input_ids: expected [MASK], got none");
  for (const auto* const one : {&labeller, &answerer, &filler})
    CHECK(bad(**one, {{2, 4, 15}, {0, 0, 0}}) == "here: input_ids: expected numbers from 0 to 14, got 15 at place 2");
  CHECK(bad(*classifier, {{}, {}}) == "here: input_ids: expected 1 to 24 ids, got 0");
  CHECK(bad(*classifier, {Ids(25, 5), Ids(25, 0)}) == "here: input_ids: expected 1 to 24 ids, got 25");
  CHECK(refusal(Failure::input, [&] {
          ask_ids(*classifier, {2, 5, 3}, 22);
        }) == "here: input_ids: expected 1 to 24 ids, got 25");
  CHECK(bad(*classifier, {{2, 15, 3}, {0, 0, 0}}) ==
        "here: input_ids: expected numbers from 0 to 14, got 15 at place 1");
  CHECK(bad(*classifier, {{2, -5, 3}, {0, 0, 0}}) ==
        "here: input_ids: expected numbers from 0 to 14, got -5 at place 1");
  CHECK(bad(*classifier, {{2, 5, 3}, {0, 0, 2}}) ==
        "here: token_type_ids: expected numbers from 0 to 1, got 2 at place 2");
  CHECK(bad(*classifier, {{2, 5, 3}, {0, 0}}) == "here: token_type_ids: expected 3, one for each id, got 2");
}

TEST_CASE("numbers that are not finite are refused with the place of their request") {
  const support::TemporaryDirectory directory;
  support::write_small_classifier(directory / "model");
  const auto predictor = open(directory / "model", Head::classify);
  const inference::Query query = predictor->encode({{"text", "red"}}, "t:3");
  const std::vector<inference::Outputs> outputs = {{.width = 3, .values = {0, NAN, 0}}};
  CHECK(refusal(Failure::numerics, [&] { inference::answer(query, outputs); }) ==
        "t:3: outputs: expected finite numbers, got nan; hint: --precision f32, or damaged weights");
}
