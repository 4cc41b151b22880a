#include "bert/text/sentences.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "bert/text/python_text.h"
#include "support/refusal.h"

using namespace bertrand;
using Lines = std::vector<std::string>;

namespace {

/// Whether this build has no ICU; then the test is skipped, but for what such a build says.
bool has_no_icu() {
  try {
    const text::SentenceSplitter splitter("en");
    return false;
  } catch (const Error& error) {
    CHECK(error.failure() == Failure::usage);
    CHECK(error.what() ==
          std::string("sentences: expected a build with ICU, got one without; hint: build with libicu-dev installed"));
    MESSAGE("SKIPPED: this build has no ICU");
    return true;
  }
}

Lines split(std::string_view paragraph, const std::string& language = "en") {
  text::SentenceSplitter splitter(language);
  std::string text;
  const std::size_t count = splitter.append_lines(paragraph, text);
  Lines lines;
  for (std::size_t begin = 0, end; begin < text.size(); begin = end + 1) {
    end = text.find('\n', begin);
    REQUIRE(end != std::string::npos);
    lines.push_back(text.substr(begin, end - begin));
  }
  CHECK(count == lines.size());
  return lines;
}

}  // namespace

TEST_CASE("a sentence ends at a full stop, a question mark, an exclamation mark or an ellipsis before a capital") {
  if (has_no_icu()) return;
  CHECK(split("It rains. Does it? It does! So it goes... And on.") ==
        Lines{"It rains.", "Does it?", "It does!", "So it goes...", "And on."});
  CHECK(split("no end") == Lines{"no end"});
  CHECK(split("It rains . It stops . . Now. — Then") == Lines{"It rains .", "It stops . .", "Now. — Then"});
  CHECK(split("He waited ... and waited. Then he left.") == Lines{"He waited ... and waited.", "Then he left."});
}

TEST_CASE("no sentence ends in a number or after an initial") {
  if (has_no_icu()) return;
  CHECK(split("It is 3.14 or 2.50 EUR. The year was 1066. Then came William.") ==
        Lines{"It is 3.14 or 2.50 EUR.", "The year was 1066.", "Then came William."});
  CHECK(split("The John A. Ryan Arena is old. J. R. R. Tolkien and J.-P. Sartre met É. Zola. They ate.") ==
        Lines{"The John A. Ryan Arena is old.", "J. R. R. Tolkien and J.-P. Sartre met É. Zola.", "They ate."});
  CHECK(split("She sings in C. Nobody hears (A. Smith).").size() == 1);  // what this rule costs
  CHECK(split("He is in the CIA. Nobody knows.") == Lines{"He is in the CIA.", "Nobody knows."});
}

TEST_CASE("no English sentence ends after a title or an abbreviation") {
  if (has_no_icu()) return;
  CHECK(split("Mr. Brown saw Dr. Grey at St. Mary's. Gen. Lee wrote (Prof. Smith said) to Messrs. Hill.") ==
        Lines{"Mr. Brown saw Dr. Grey at St. Mary's.", "Gen. Lee wrote (Prof. Smith said) to Messrs. Hill."});
  CHECK(split("United States v. Flanders was Vol. 3. He left Kiev. Then he slept.") ==
        Lines{"United States v. Flanders was Vol. 3.", "He left Kiev.", "Then he slept."});
  CHECK(split("Born in the U.S. Army, she left.").size() == 1);
  CHECK(split("the best. Dr. Who.") == Lines{"the best.", "Dr. Who."});
  CHECK(split("Some wine, e.g. Port. It was “Mr. X” again.").size() == 2);
}

TEST_CASE("a number may follow No., and it may be an answer") {
  if (has_no_icu()) return;
  CHECK(split("It was No. 43. See no. 8 Derrick.") == Lines{"It was No. 43.", "See no. 8 Derrick."});
  CHECK(split("Did he? No. He did not.") == Lines{"Did he?", "No.", "He did not."});
}

TEST_CASE("marks that close stay with their sentence, and what a small letter goes on with is none of its own") {
  if (has_no_icu()) return;
  CHECK(split("\"Stop!\" He ran. (They all did.) “Why?” she asked.") ==
        Lines{"\"Stop!\"", "He ran.", "(They all did.)", "“Why?” she asked."});
  CHECK(split("Help! it is late.") == Lines{"Help!", "it is late."});
}

TEST_CASE("Chinese and Japanese sentences end without a blank") {
  if (has_no_icu()) return;
  CHECK(split("今天下雨。你来吗？来！“好。”他说。", "zh") ==
        Lines{"今天下雨。", "你来吗？", "来！", "“好。”", "他说。"});
  CHECK(split("他走了。（真的。）《书》？《书》", "zh") == Lines{"他走了。", "（真的。）", "《书》？", "《书》"});
  CHECK(split("。“（", "zh") == Lines{"。“（"});
  CHECK(split("雨です。本当？はい！", "ja") == Lines{"雨です。", "本当？", "はい！"});
}

TEST_CASE("German abbreviations are whole words, of several parts too") {
  if (has_no_icu()) return;
  // "r." and "d." are abbreviations of CLDR's, with which "er." and "Land." end.
  CHECK(split("Dann kam er. Das Land. Hr. Dr. Grün wohnt z. B. Am Markt Nr. 5. Er geht.", "de") ==
        Lines{"Dann kam er.", "Das Land.", "Hr. Dr. Grün wohnt z. B. Am Markt Nr. 5.", "Er geht."});
  CHECK(split("Im Jahr 300 n. Chr. Rom fiel.", "de").size() == 1);
  CHECK(split("Z. Zt. Reg.-Bez. Köln.", "de").size() == 1);
  CHECK(split("Fue en 300 a. e. c. Roma era otra.", "es").size() == 1);  // "c." alone is none
  CHECK(split("Vino la c. Roma era otra.", "es").size() == 2);
  CHECK(split("Hr. Grün. Gen. Lee.", "en") == Lines{"Hr.", "Grün.", "Gen. Lee."});
  CHECK(split("Gen. Lee kam.", "de") == Lines{"Gen.", "Lee kam."});
  // A known limit: a number that ends a sentence and one that stands for a rank look alike.
  CHECK(split("Er kam am 3. Oktober an.", "de") == Lines{"Er kam am 3.", "Oktober an."});
}

TEST_CASE("white space goes from the ends and becomes one blank within") {
  if (has_no_icu()) return;
  CHECK(split(" \t It\u00a0 rains.\u3000\r Now\x1c\v\fit  stops. \r") == Lines{"It rains.", "Now it stops."});
  CHECK(split("one\u2029two\u2028three") == Lines{"one", "two", "three"});
  CHECK(split("one\u2029 two") == Lines{"one", "two"});
}

TEST_CASE("no sentence is without a character that the tokenizer keeps") {
  if (has_no_icu()) return;
  CHECK(split("").empty());
  CHECK(split(" \t\u00a0\r").empty());
  CHECK(split("\u200b\ufeff \u0301").empty());
  CHECK(split(std::string_view("\0", 1)).empty());
  CHECK(split(std::string_view("a\0b. C", 6)) == Lines{std::string("a\0b.", 4), "C"});
}

TEST_CASE("a paragraph of a megabyte is cut as a short one, and one without an end is one sentence") {
  if (has_no_icu()) return;
  std::string paragraph;
  while (paragraph.size() < 1 << 20) paragraph += "Mr. Brown said 3.5 words. ";
  const Lines lines = split(paragraph);
  CHECK(lines.size() == paragraph.size() / 26);
  CHECK(std::ranges::count(lines, "Mr. Brown said 3.5 words.") == std::ssize(lines));
  CHECK(split(std::string(1 << 20, 'a')).size() == 1);
}

TEST_CASE("nothing of a text is lost, wherever it is cut") {
  if (has_no_icu()) return;
  const std::vector<std::string> parts = {".",   ". ",     " ",  "A",  "b",  "Dr.",        " v. ", "!",
                                          "?\"", "“",      "（", "。", "文", "É.",         "-",    "1",
                                          "\r",  "\u2029", "…",  "(",  ")",  "\U0001f600", "No. ", "\u00a0"};
  std::mt19937 random(1);
  text::SentenceSplitter splitter("en");
  for (int i = 0; i < 5000; ++i) {
    std::string paragraph, expected, lines;
    for (std::size_t count = random() % 30; count > 0; --count) paragraph += parts[random() % parts.size()];
    for (const std::u32string& word : text::python_split(text::to_code_points(paragraph)))
      expected += text::to_utf8(word);
    const std::size_t count = splitter.append_lines(paragraph, lines);
    CAPTURE(paragraph);
    CHECK(static_cast<std::size_t>(std::ranges::count(lines, '\n')) == count);
    CHECK(lines.find("\n\n") == std::string::npos);
    std::erase(lines, '\n');
    std::erase(lines, ' ');
    REQUIRE(lines == expected);
  }
}

TEST_CASE("a splitter that is used again says the same, and adds to what is there") {
  if (has_no_icu()) return;
  text::SentenceSplitter splitter("en");
  std::string lines = "before\n";
  CHECK(splitter.append_lines("It rains. It", lines) == 2);
  CHECK(splitter.append_lines("", lines) == 0);
  CHECK(splitter.append_lines("snows.", lines) == 1);
  CHECK(lines == "before\nIt rains.\nIt\nsnows.\n");
}

TEST_CASE("a language that ICU does not know is refused") {
  if (has_no_icu()) return;
  for (const char* language : {"klingon", "", "xx", "e", "../en", "en de"})
    CHECK(support::refusal(Failure::usage, [&] { split("a", language); }) ==
          std::string("--language: expected a code that ICU has, such as en, de, fr or zh, got ") + language);
  for (const char* language : {"en", "en-US", "en_us", "de", "fr", "zh", "zh_Hant", "ja", "nl"})
    CHECK(split("One. Two.", language).size() == 2);
  CHECK(split("Dr. Who", "en-US").size() == 1);
  CHECK(split("Hello. Mr. Brown", "nl").size() == 3);  // nothing of English, whatever the system's language is
}
