// The files that the official scorers read, scored as they stream by.
#pragma once
#include <filesystem>
#include <map>
#include <string>

#include "bert/tasks/answer_scores.h"
#include "bert/tasks/ranking_scores.h"
#include "bert/tasks/token_scores.h"

namespace bertrand::tasks {

/// Figures by name, and what a person should be told beside them.
struct FileScores {
  std::map<std::string, double> figures;
  std::vector<std::string> warnings;
  std::string table = {};  ///< the figures in columns for the eye, if there is such a table
};

/// A predictions file of SQuAD: one JSON object, a text for each question's id. Throws Error(Failure::input) naming the
/// file and the key for a value of another kind and for a key that comes twice.
Answers read_answers(const std::filesystem::path& file);
/// A file of null odds: one JSON object, a number for each question's id.
NullOdds read_null_odds(const std::filesystem::path& file);

/// The figures of a file with a word a line: word, true tag, predicted tag, the last two columns counting; a blank line
/// ends a sentence. Of ner these are accuracy, precision, recall and f1 over entities, those of each type and their
/// means: PER_f1 is that of the type PER, macro_f1 and weighted_f1 are means, and type_macro_f1 is that of a type
/// macro; tags that are none of entities are a warning. Of other tasks they are those of token_figures(). There is a
/// table. Columns are separated by tabs if the first line has one, else by blanks, and all lines are as the first. What
/// is no UTF-8 is a warning. Throws Error(Failure::input) with file and line for too few columns and for a tag that is
/// not UTF-8.
FileScores score_tokens_file(const std::filesystem::path& file, TokenTask task = TokenTask::ner);

/// Judgements, lines `query id, 0, passage id, relevance`: the passages whose relevance is above 0. Throws
/// Error(Failure::input) with file and line for other columns.
Qrels read_qrels(const std::filesystem::path& file);

/// map, rprec, mrr, mrr_at_10, ndcg and queries: the means over the queries of `run` (query id, passage id, rank), by
/// the judgements in `qrels` (query id, 0, passage id, relevance). Lines of a query stand together, in any order.
/// Throws Error(Failure::input) with file and line for other columns and for a query that comes in two places.
FileScores score_ranking_files(const std::filesystem::path& qrels, const std::filesystem::path& run);

}  // namespace bertrand::tasks
