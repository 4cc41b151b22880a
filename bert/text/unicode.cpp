// Classes of characters and their lower case, as CPython 3.11 has them.
#include "bert/text/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <vector>

namespace bertrand::text {
namespace {

constexpr char32_t kCodePoints = 0x110000;
constexpr char32_t kCapitalSigma = 0x3A3;
constexpr char32_t kSmallSigma = 0x3C3;
constexpr char32_t kFinalSigma = 0x3C2;
constexpr char32_t kCapitalIWithDot = 0x130;
constexpr char32_t kCombiningDotAbove = 0x307;

// Unicode 14.0: how many code points are assigned, then unassigned, then assigned, … from U+0000 on.
constexpr int kAssignedRuns[] = {
    888, 2,    6,    4,    7,     1,     1,     1,    20,    1,   397,  1,    38,   2,    50,    2,    3,    1,
    55,  8,    27,   4,    6,     11,    270,   1,    60,    2,   101,  14,   59,   2,    49,    2,    15,   1,
    28,  2,    1,    1,    11,    5,     31,    1,    2,     6,   236,  1,    8,    2,    2,     2,    22,   1,
    7,   1,    1,    3,    4,     2,     9,     2,    2,     2,   4,    8,    1,    4,    2,     1,    5,    2,
    25,  2,    3,    1,    6,     4,     2,     2,    22,    1,   7,    1,    2,    1,    2,     1,    2,    2,
    1,   1,    5,    4,    2,     2,     3,     3,    1,     7,   4,    1,    1,    7,    17,    10,   3,    1,
    9,   1,    3,    1,    22,    1,     7,     1,    2,     1,   5,    2,    10,   1,    3,     1,    3,    2,
    1,   15,   4,    2,    12,    7,     7,     1,    3,     1,   8,    2,    2,    2,    22,    1,    7,    1,
    2,   1,    5,    2,    9,     2,     2,     2,    3,     7,   3,    4,    2,    1,    5,     2,    18,   10,
    2,   1,    6,    3,    3,     1,     4,     3,    2,     1,   1,    1,    2,    3,    2,     3,    3,    3,
    12,  4,    5,    3,    3,     1,     4,     2,    1,     6,   1,    14,   21,   5,    13,    1,    3,    1,
    23,  1,    16,   2,    9,     1,     3,     1,    4,     7,   2,    1,    3,    2,    1,     2,    4,    2,
    10,  7,    22,   1,    3,     1,     23,    1,    10,    1,   5,    2,    9,    1,    3,     1,    4,    7,
    2,   6,    2,    1,    4,     2,     10,    1,    2,     13,  13,   1,    3,    1,    51,    1,    3,    1,
    6,   4,    16,   2,    26,    1,     3,     1,    18,    3,   24,   1,    9,    1,    1,     2,    7,    3,
    1,   4,    6,    1,    1,     1,     8,     6,    10,    2,   3,    12,   58,   4,    29,    37,   2,    1,
    1,   1,    5,    1,    24,    1,     1,     1,    23,    2,   5,    1,    1,    1,    6,     2,    10,   2,
    4,   32,   72,   1,    36,    4,     39,    1,    36,    1,   15,   1,    13,   37,   198,   1,    1,    5,
    1,   2,    377,  1,    4,     2,     7,     1,    1,     1,   4,    2,    41,   1,    4,     2,    33,   1,
    4,   2,    7,    1,    1,     1,     4,     2,    15,    1,   57,   1,    4,    2,    67,    2,    32,   3,
    26,  6,    86,   2,    6,     2,     669,   3,    89,    7,   22,   9,    24,   9,    20,    12,   13,   1,
    3,   1,    2,    12,   94,    2,     10,    6,    10,    6,   26,   6,    89,   7,    43,    5,    70,   10,
    31,  1,    12,   4,    12,    4,     1,     3,    42,    2,   5,    11,   44,   4,    26,    6,    11,   3,
    62,  2,    65,   1,    29,    2,     11,    6,    10,    6,   14,   2,    31,   49,   77,    3,    47,   1,
    116, 8,    60,   3,    15,    3,     60,    7,    43,    2,   11,   8,    43,   5,    534,   2,    6,    2,
    38,  2,    6,    2,    8,     1,     1,     1,    1,     1,   1,    1,    31,   2,    53,    1,    15,   1,
    14,  2,    6,    1,    19,    2,     3,     1,    9,     1,   101,  1,    12,   2,    27,    1,    13,   3,
    33,  15,   33,   15,   140,   4,     663,   25,   11,    21,  1812, 2,    32,   1,    349,   5,    45,   1,
    1,   5,    1,    2,    56,    7,     2,     14,   24,    9,   7,    1,    7,    1,    7,     1,    7,    1,
    7,   1,    7,    1,    7,     1,     7,     1,    126,   34,  26,   1,    89,   12,   214,   26,   12,   4,
    64,  1,    86,   2,    103,   5,     43,    1,    94,    1,   84,   12,   47,   1,    29293, 3,    55,   9,
    348, 20,   184,  8,    203,   5,     2,     1,    1,     1,   5,    24,   59,   3,    10,    6,    56,   8,
    70,  8,    12,   6,    116,   11,    30,    3,    78,    1,   11,   4,    33,   1,    55,    9,    14,   2,
    10,  2,    103,  24,   28,    10,    6,     2,    6,     2,   6,    9,    7,    1,    7,     1,    60,   4,
    126, 2,    10,   6,    11172, 12,    23,    4,    49,    4,   8814, 2,    106,  38,   7,     12,   5,    5,
    26,  1,    5,    1,    1,     1,     2,     1,    2,     1,   125,  16,   445,  2,    54,    7,    1,    32,
    42,  6,    51,   1,    19,    1,     4,     4,    5,     1,   135,  2,    1,    1,    190,   3,    6,    2,
    6,   2,    6,    2,    3,     3,     7,     1,    7,     10,  5,    2,    12,   1,    26,    1,    19,   1,
    2,   1,    15,   2,    14,    34,    123,   5,    3,     4,   45,   3,    88,   1,    13,    3,    1,    47,
    46,  130,  29,   3,    49,    15,    28,    4,    36,    9,   30,   5,    43,   5,    30,    1,    37,   4,
    14,  42,   158,  2,    10,    6,     36,    4,    36,    4,   40,   8,    52,   11,   12,    1,    15,   1,
    7,   1,    2,    1,    11,    1,     15,    1,    7,     1,   2,    67,   311,  9,    22,    10,   8,    24,
    6,   1,    42,   1,    9,     69,    6,     2,    1,     1,   44,   1,    2,    3,    1,     2,    23,   1,
    72,  8,    9,    48,   19,    1,     2,     5,    33,    3,   27,   5,    1,    64,   56,    4,    20,   2,
    50,  1,    2,    5,    8,     1,     3,     1,    29,    2,   3,    4,    10,   7,    9,     7,    64,   32,
    39,  4,    12,   9,    54,    3,     29,    2,    27,    5,   26,   7,    4,    12,   7,     80,   73,   55,
    51,  13,   51,   7,    46,    8,     10,    294,  31,    1,   42,   1,    3,    2,    2,     78,   40,   8,
    42,  22,   26,   38,   28,    20,    23,    9,    78,    4,   36,   9,    68,   10,   1,     2,    25,   7,
    10,  6,    53,   1,    18,    8,     39,    9,    96,    1,   20,   11,   18,   1,    44,    65,   7,    1,
    1,   1,    4,    1,    15,    1,     11,    6,    59,    5,   10,   6,    4,    1,    8,     2,    2,    2,
    22,  1,    7,    1,    2,     1,     5,     1,    10,    2,   2,    2,    3,    2,    1,     6,    1,    5,
    7,   2,    7,    3,    5,     139,   92,    1,    5,     30,  72,   8,    10,   166,  54,    2,    38,   34,
    69,  11,   10,   6,    13,    19,    58,    6,    10,    54,  27,   2,    15,   4,    23,    185,  60,   100,
    83,  12,   8,    2,    1,     2,     8,     1,    2,     1,   30,   1,    2,    2,    12,    9,    10,   70,
    8,   2,    46,   2,    11,    27,    72,    8,    83,    13,  73,   263,  9,    1,    45,    1,    14,   10,
    29,  3,    32,   2,    22,    1,     14,    73,   7,     1,   2,    1,    44,   3,    1,     1,    2,    1,
    9,   8,    10,   6,    6,     1,     2,     1,    37,    1,   2,    1,    6,    7,    10,    310,  25,   183,
    1,   15,   50,   13,   923,   102,   111,   1,    5,     11,  196,  2636, 99,   13,   1071,  1,    9,    4039,
    583, 8633, 569,  7,    31,    1,     10,    4,    81,    1,   10,   6,    30,   2,    6,     10,   70,   10,
    10,  1,    7,    1,    21,    5,     19,    688,  91,    101, 75,   4,    57,   7,    17,    64,   5,    11,
    2,   14,   6136, 8,    1238,  42,    9,     8935, 4,     1,   7,    1,    2,    1,    291,   45,   3,    17,
    4,   8,    396,  2308, 107,   5,     13,    3,    9,     7,   10,   2,    8,    4700, 46,    2,    23,   9,
    116, 60,   246,  10,   39,    2,     194,   21,   70,    154, 20,   12,   87,   9,    25,    135,  85,   1,
    71,  1,    2,    2,    1,     2,     2,     2,    4,     1,   12,   1,    1,    1,    7,     1,    65,   1,
    4,   2,    8,    1,    7,     1,     28,    1,    4,     1,   5,    1,    1,    3,    7,     1,    340,  2,
    292, 2,    702,  15,   5,     1,     15,    1104, 31,    225, 7,    1,    17,   2,    7,     1,    2,    1,
    5,   213,  45,   3,    14,    2,     10,    4,    2,     320, 31,   17,   58,   5,    1,     1248, 7,    1,
    4,   1,    2,    1,    15,    1,     197,   2,    16,    41,  76,   4,    10,   4,    2,     785,  68,   76,
    61,  194,  4,    1,    27,    1,     2,     1,    1,     2,   1,    1,    10,   1,    4,     1,    1,    1,
    1,   6,    1,    4,    1,     1,     1,     1,    1,     1,   3,    1,    2,    1,    1,     2,    1,    1,
    1,   1,    1,    1,    1,     1,     1,     1,    2,     1,   1,    2,    4,    1,    7,     1,    4,    1,
    4,   1,    1,    1,    10,    1,     17,    5,    3,     1,   5,    1,    17,   52,   2,     270,  44,   4,
    100, 12,   15,   2,    15,    1,     15,    1,    37,    10,  174,  56,   29,   13,   44,    4,    9,    7,
    2,   14,   6,    154,  984,   5,     16,    3,    13,    3,   116,  12,   89,   7,    12,    4,    1,    15,
    12,  4,    56,   8,    10,    6,     40,    8,    30,    2,   2,    78,   340,  12,   14,    2,    5,    3,
    5,   3,    7,    9,    29,    3,     11,    5,    6,     10,  10,   6,    8,    8,    7,     9,    147,  1,
    55,  37,   10,   1030, 42720, 32,    4153,  7,    222,   2,   5762, 14,   7473, 3103, 542,   1506, 4939, 715958,
    1,   30,   96,   128,  240,   65040, 65534, 2,    65534, 2,
};

bool is_one_of(char32_t c, std::initializer_list<char32_t> list) {
  return std::find(list.begin(), list.end(), c) != list.end();
}

bool is_between(char32_t c, char32_t first, char32_t last) { return first <= c && c <= last; }

// The blocks of _is_chinese_char in Google's tokenization.py.
bool is_ideograph(char32_t c) {
  return is_between(c, 0x4E00, 0x9FFF) || is_between(c, 0x3400, 0x4DBF) || is_between(c, 0x20000, 0x2A6DF) ||
         is_between(c, 0x2A700, 0x2B73F) || is_between(c, 0x2B740, 0x2B81F) || is_between(c, 0x2B820, 0x2CEAF) ||
         is_between(c, 0xF900, 0xFAFF) || is_between(c, 0x2F800, 0x2FA1F);
}

bool is_punctuation(char32_t c, utf8proc_category_t category) {
  return is_between(c, 33, 47) || is_between(c, 58, 64) || is_between(c, 91, 96) || is_between(c, 123, 126) ||
         (UTF8PROC_CATEGORY_PC <= category && category <= UTF8PROC_CATEGORY_PO);
}

// Case_Ignorable: these categories, and Word_Break = MidLetter, MidNumLet or Single_Quote.
bool is_case_ignorable(char32_t c, utf8proc_category_t category) {
  return category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_ME || category == UTF8PROC_CATEGORY_CF ||
         category == UTF8PROC_CATEGORY_LM || category == UTF8PROC_CATEGORY_SK ||
         is_one_of(c, {0x27, 0x2E, 0x3A, 0xB7, 0x387, 0x55F, 0x5F4, 0x2018, 0x2019, 0x2024, 0x2027, 0xFE13, 0xFE52,
                       0xFE55, 0xFF07, 0xFF0E, 0xFF1A});
}

// Cased: these categories, and Other_Lowercase and Other_Uppercase.
bool is_cased(char32_t c, utf8proc_category_t category) {
  return category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LL || category == UTF8PROC_CATEGORY_LT ||
         c == 0xAA || c == 0xBA || is_between(c, 0x2160, 0x217F) || is_between(c, 0x24B6, 0x24E9) ||
         is_between(c, 0x1F130, 0x1F149) || is_between(c, 0x1F150, 0x1F169) || is_between(c, 0x1F170, 0x1F189);
}

// The canonical decomposition of one code point: at most 4 code points, 3 in Hangul.
int decompose(char32_t c, utf8proc_int32_t (&parts)[8]) {
  int boundary_class = 0;
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | UTF8PROC_STABLE);
  return static_cast<int>(
      utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts, 8, options, &boundary_class));
}

std::uint8_t properties_of(char32_t c) {
  const auto code_point = static_cast<utf8proc_int32_t>(c);
  const utf8proc_property_t& entry = *utf8proc_get_property(code_point);
  const auto category = static_cast<utf8proc_category_t>(entry.category);
  const bool is_plain_space = c == ' ' || c == '\t' || c == '\n' || c == '\r';
  const bool is_control = category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF;
  const bool is_separator = UTF8PROC_CATEGORY_ZS <= category && category <= UTF8PROC_CATEGORY_ZP;

  int bits = 0;
  if (c == 0 || c == 0xFFFD || (is_control && !is_plain_space)) bits |= kDropped;
  if (is_plain_space || is_separator) bits |= kSpace;
  if (is_ideograph(c)) bits |= kIdeograph;
  if (is_punctuation(c, category)) bits |= kPunctuation;
  if (category == UTF8PROC_CATEGORY_MN) bits |= kMark;
  utf8proc_int32_t parts[8];
  if (utf8proc_tolower(code_point) != code_point || entry.combining_class != 0 || decompose(c, parts) != 1 ||
      parts[0] != code_point) {
    bits |= kRewritten;
  }
  if (is_case_ignorable(c, category)) {
    bits |= kCaseIgnorable;
  } else if (is_cased(c, category)) {
    bits |= kCased;
  }
  return static_cast<std::uint8_t>(bits);
}

}  // namespace

UnicodeTable::UnicodeTable() : properties_(std::make_unique<std::uint8_t[]>(kCodePoints)) {
  char32_t c = 0;
  bool assigned = true;
  for (const int run : kAssignedRuns) {
    for (const char32_t end = c + static_cast<char32_t>(run); c < end; ++c) {
      properties_[c] = assigned ? properties_of(c) : is_ideograph(c) ? kIdeograph : 0;
    }
    assigned = !assigned;
  }
}

const UnicodeTable& UnicodeTable::get() {
  static const UnicodeTable table;
  return table;
}

bool UnicodeTable::is_assigned(char32_t c) {
  bool assigned = true;
  for (const int run : kAssignedRuns) {
    if (c < static_cast<char32_t>(run)) return assigned;
    c -= static_cast<char32_t>(run);
    assigned = !assigned;
  }
  return false;
}

void UnicodeTable::lower(std::u32string& text) const {
  // CPython's handle_capital_sigma: final after a cased letter and before none, looking through case-ignorable ones.
  const auto is_final_sigma = [&](std::size_t i) {
    std::size_t before = i;
    while (before > 0 && (properties(text[before - 1]) & kCaseIgnorable)) --before;
    if (before == 0 || !(properties(text[before - 1]) & kCased)) return false;
    std::size_t after = i + 1;
    while (after < text.size() && (properties(text[after]) & kCaseIgnorable)) ++after;
    return after == text.size() || !(properties(text[after]) & kCased);
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!(properties(text[i]) & kRewritten)) continue;
    if (text[i] == kCapitalSigma) {
      // Lower-casing keeps Cased and Case_Ignorable as they are, so what stands before may be lower case already.
      text[i] = is_final_sigma(i) ? kFinalSigma : kSmallSigma;
    } else if (text[i] == kCapitalIWithDot) {
      text[i] = 'i';
      text.insert(++i, 1, kCombiningDotAbove);
    } else {
      text[i] = static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(text[i])));
    }
  }
}

void UnicodeTable::decompose_without_marks(const std::u32string& text, std::u32string& out) const {
  struct Combining {
    char32_t code_point;
    int combining_class;
  };
  std::vector<Combining> pending;  // a run of code points with a combining class, to be sorted by it
  const auto flush = [&] {
    std::stable_sort(pending.begin(), pending.end(),
                     [](const Combining& a, const Combining& b) { return a.combining_class < b.combining_class; });
    for (const Combining& mark : pending) {
      if (!(properties(mark.code_point) & kMark)) out.push_back(mark.code_point);
    }
    pending.clear();
  };
  const auto put = [&](char32_t c) {
    const int combining_class =
        (properties(c) & kRewritten) ? utf8proc_get_property(static_cast<utf8proc_int32_t>(c))->combining_class : 0;
    if (combining_class != 0) {
      pending.push_back({c, combining_class});
    } else {
      if (!pending.empty()) flush();
      if (!(properties(c) & kMark)) out.push_back(c);
    }
  };
  out.clear();
  for (const char32_t c : text) {
    if (!(properties(c) & kRewritten)) {
      put(c);
      continue;
    }
    utf8proc_int32_t parts[8];
    const int count = decompose(c, parts);
    for (int i = 0; i < count; ++i) put(static_cast<char32_t>(parts[i]));
  }
  flush();
}

}  // namespace bertrand::text
