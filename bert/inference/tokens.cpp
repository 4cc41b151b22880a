// A label for each word, and the entities that the labels name:
// {"text"}, {"words"} or {"tokens"} → {"entities": [{"type", "text", "start", "end", "score"}], "words": [{"word",
// "label", …}]}.
#include <algorithm>

#include "bert/inference/model.h"
#include "bert/network/heads.h"
#include "bert/tasks/entity_scores.h"
#include "bert/tasks/metrics.h"
#include "bert/tasks/token_windows.h"
#include "bert/text/unicode.h"
#include "bert/text/utf8.h"
#include "io/error.h"

namespace bertrand::inference {
namespace {

/// Words of one text, so that its answer takes no more than 1.7 GB (kWordBytes each).
constexpr std::size_t kMostWords = std::size_t{1} << 20;

/// A word of a text: its code points [start, end), and where its bytes begin and end in the text.
struct Word {
  std::string text;
  std::int64_t start = 0, end = 0;
  std::size_t first_byte = 0, end_byte = 0;
};

/// A text and its words, which may be those of the request, joined by blanks.
struct Sentence {
  std::string text;
  std::vector<Word> words;

  void add(const std::string& word) {
    if (!words.empty()) text += ' ';
    const std::int64_t start = words.empty() ? 0 : words.back().end + 1;
    const std::size_t first_byte = text.size();
    text += word;
    words.push_back({word, start, start + text::count_code_points(word), first_byte, text.size()});
  }
};

/// The words that Google's BasicTokenizer finds, as they stand in the text: cut at white space, punctuation and
/// ideographs stand alone, and what is dropped neither begins nor ends one. Of too many, the last ones are not there.
Sentence cut_words(std::string text) {
  const text::UnicodeTable& table = text::UnicodeTable::get();
  Sentence sentence{.text = std::move(text), .words = {}};
  const char *p = sentence.text.data(), *const end = p + sentence.text.size();
  const char* word_end = nullptr;  // of a word that may go on
  for (std::int64_t place = 0; p < end && sentence.words.size() <= kMostWords; ++place) {
    const char* const begin = p;
    const std::uint8_t properties = table.properties(text::decode_utf8(p));
    if (properties & text::kDropped) continue;
    const bool stands_alone = properties & (text::kPunctuation | text::kIdeograph);
    if (stands_alone || (properties & text::kSpace)) word_end = nullptr;
    if (properties & text::kSpace) continue;
    if (!word_end)
      sentence.words.push_back(
          {.text = "", .start = place, .first_byte = static_cast<std::size_t>(begin - sentence.text.data())});
    Word& word = sentence.words.back();
    word.text.append(word_end ? word_end : begin, p);  // with what was dropped in the middle of the word
    word.end = place + 1;
    word.end_byte = static_cast<std::size_t>(p - sentence.text.data());
    word_end = stands_alone ? nullptr : p;
  }
  return sentence;
}

/// The label of a word that is of no entity.
constexpr std::string_view kOutside = "O";

/// Whether a label is a tag with a prefix, as B-PER of IOB2 or M-ORG of BMES.
bool is_tag(std::string_view label) {
  return label.size() > 2 && 'A' <= label[0] && label[0] <= 'Z' && label[1] == '-';
}

class TokenLabeller : public ModelPredictor {
 public:
  TokenLabeller(Model model, const Options& options)
      : ModelPredictor(std::move(model)),
        labels_(model_.config.labels),
        has_outside_(std::ranges::find(labels_, kOutside) != labels_.end()),
        windows_{.max_length = model_.max_length, .overlap = options.overlap},
        network_(model_, Head::tokens, static_cast<Dim>(labels_.size())) {
    tasks::SentenceEncoder(model_.tokenizer, windows_);  // refuses windows that are none
  }

  Query encode(const io::Json& request, const std::string& where) const override {
    io::JsonReader reader(request, {where, Failure::input});
    Sentence sentence = read(reader);
    const char* const list = list_of(reader);
    const std::string_view key = list ? list : "text";
    if (sentence.words.size() > kMostWords)
      fail(Failure::input, "{}: {}: expected at most {} words, got more; hint: a paragraph or a page a line", where,
           key, kMostWords);
    std::vector<std::string> words;
    for (const Word& word : sentence.words) words.push_back(word.text);
    tasks::EncodedSentences encoded;
    tasks::SentenceEncoder(model_.tokenizer, windows_).append(words, encoded);
    if (encoded.windows.size() == 0) fail(Failure::input, "{}: {}: expected at least one token, got none", where, key);
    std::vector<std::optional<std::size_t>> tokens;  // of each word, counted over all windows
    for (std::size_t i = 0; i < words.size(); ++i) tokens.push_back(encoded.token(i));
    Query query{.where = where,
                .words = tokens.size(),
                .make_answer = [this, sentence = std::move(sentence), tokens](std::span<const Outputs> outputs) {
                  return labelled(sentence, tokens, outputs);
                }};
    for (std::int64_t i = 0; i < encoded.windows.size(); ++i) {
      const std::span<const std::int32_t> ids = encoded.windows.ids(i);
      query.sequences.push_back(bert::sequence_of(ids, std::ssize(ids)));
    }
    return query;
  }

  Query encode_ids(PaddedSequence given, const std::string& where) const override {
    model_.require_readable(given, where);
    return {.where = where,
            .sequences = {std::move(given.sequence)},
            .padding = given.padding,
            .make_answer = [padding = given.padding](std::span<const Outputs> outputs) {
              return probabilities(outputs[0], padding);
            }};
  }

  /// A row of labels for each token.
  std::vector<Outputs> run(std::span<const bert::Sequence> sequences) const override {
    return deal_rows(forward_(sequences), lengths(sequences));
  }

 private:
  /// The key of a list of words, which data sets of Hugging Face call tokens; null: there is none. Beside a text,
  /// tokens are somebody's pieces of it.
  static const char* list_of(io::JsonReader& reader) {
    if (reader.find("words")) return "words";
    return reader.find("tokens") && !reader.find("text") ? "tokens" : nullptr;
  }

  static Sentence read(io::JsonReader& reader) {
    const char* const list = list_of(reader);
    if (!list) return cut_words(reader.text("text"));
    Sentence sentence;
    for (const io::Json& word : reader.list(list)) {
      if (!word.is_string()) reader.refuse(list, "a list of strings", &word);
      sentence.add(word.get<std::string>());
    }
    return sentence;
  }

  static io::Json probabilities(const Outputs& outputs, std::size_t padding) {
    io::Json rows = io::Json::array();
    for (std::size_t i = 0; i < outputs.rows(); ++i) rows.push_back(json_numbers(tasks::softmax(outputs.row(i))));
    rows.insert(rows.end(), padding, json_numbers(std::vector<double>(outputs.width, 0)));
    return {{"probabilities", std::move(rows)}};
  }

  struct Label {
    std::string name;
    double score = 0;
  };

  /// The label that a row of outputs is of, or a word without a token: no entity, and no certainty.
  Label label_of(std::optional<std::span<const float>> row) const {
    if (!row) return {has_outside_ ? std::string(kOutside) : labels_[0]};
    const std::vector<double> shares = tasks::softmax(*row);
    const std::size_t best = tasks::largest(shares, 1)[0];
    return {labels_[best], shares[best]};
  }

  io::Json labelled(const Sentence& sentence, const std::vector<std::optional<std::size_t>>& tokens,
                    std::span<const Outputs> outputs) const {
    std::vector<std::string> tags;
    std::vector<double> scores;
    io::Json words = io::Json::array();
    std::vector<std::span<const float>> rows;  // of all windows
    for (const Outputs& window : outputs)
      for (std::size_t row = 0; row < window.rows(); ++row) rows.push_back(window.row(row));
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const Label label = label_of(tokens[i] ? std::optional(rows.at(*tokens[i])) : std::nullopt);
      const Word& word = sentence.words[i];
      words.push_back({{"word", word.text},
                       {"label", label.name},
                       {"score", json_number(label.score)},
                       {"start", word.start},
                       {"end", word.end}});
      tags.push_back(tag_of(label.name));
      scores.push_back(label.score);
    }
    return {{"entities", entities(sentence, tags, scores)}, {"words", std::move(words)}};
  }

  /// What the label says of entities. Beside O, one without a prefix is I- of its own name, as in transformers. Without
  /// O, every word has such a label, as a part of speech: it names none.
  std::string tag_of(const std::string& label) const {
    if (is_tag(label) || label == kOutside) return label;
    return has_outside_ ? "I-" + label : std::string(kOutside);
  }

  /// The entities that seqeval finds. A score is the mean of the words'.
  static io::Json entities(const Sentence& sentence, std::span<const std::string> tags,
                           std::span<const double> scores) {
    io::Json all = io::Json::array();
    for (const tasks::Entity& entity : tasks::entities(tags)) {
      double sum = 0;
      for (std::int64_t i = entity.first; i <= entity.last; ++i) sum += scores[static_cast<std::size_t>(i)];
      const Word& first = sentence.words[static_cast<std::size_t>(entity.first)];
      const Word& last = sentence.words[static_cast<std::size_t>(entity.last)];
      all.push_back({{"type", entity.type},
                     {"text", sentence.text.substr(first.first_byte, last.end_byte - first.first_byte)},
                     {"start", first.start},
                     {"end", last.end},
                     {"score", json_number(sum / static_cast<double>(entity.last - entity.first + 1))}});
    }
    return all;
  }

  const std::vector<std::string> labels_;
  const bool has_outside_;  ///< whether kOutside is one of them
  const tasks::WindowOptions windows_;
  const Loaded<bert::ForTokenClassification> network_;
  mutable Forward forward_{model_.backend, [this](const auto& batch, const Tensor&) { return (*network_)(batch, {}); }};
};

}  // namespace

std::unique_ptr<Predictor> make_token_labeller(Model model, const Options& options) {
  return std::make_unique<TokenLabeller>(std::move(model), options);
}

}  // namespace bertrand::inference
