// The figures of entities, type by type: for programs, and for people.
#pragma once
#include <string>

#include "bert/tasks/entity_scores.h"

namespace bertrand::tasks {

/// Tab-separated text: for each type precision, recall, F1 and support, then those of all entities together (micro),
/// and the means of the types (macro) and of the types by their support (weighted).
std::string entity_report(const EntityScores& scores);

/// The same in columns for the eye: what seqeval's classification_report(digits=4) returns.
std::string entity_table(const EntityScores& scores);

}  // namespace bertrand::tasks
