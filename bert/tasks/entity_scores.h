// Entities in sequences of tags, and how well predicted ones agree with the true ones: the figures of seqeval, which
// follows conlleval (Tjong Kim Sang and Buchholz 2000).
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bert/tasks/class_figures.h"

namespace bertrand::tasks {

/// The words [first, last] of a sentence, from 0.
struct Entity {
  std::string type;  ///< what follows the hyphen: PER of B-PER; "_" if nothing does
  std::int64_t first = 0, last = 0;
  auto operator<=>(const Entity&) const = default;  // NOLINT(modernize-use-nullptr): clang-tidy 14 sees one in <=>
};

/// Whether a label is a tag of an entity of IOB2, BMES, IOBES or BILOU: B-PER, or B where entities have no types.
bool is_entity_tag(std::string_view label);

/// "expected O, or those of entities as B-PER, got \"PER\"", and a hint.
std::string text_of_no_entity_tag(const std::string& label);

/// The entities that the tags of one sentence name. Tags are O, or B, I, E or S with a type. As in seqeval, a tag that
/// cannot stand where it stands (I-PER after O or after B-LOC) begins an entity of its own.
std::vector<Entity> entities(std::span<const std::string> tags);

/// The entities of sentence after sentence, as seqeval finds those of a file: it takes all tags for one sequence, with
/// an O after each sentence. So what the first tag of a file begins it may not begin in a later sentence (a tag without
/// a type, as N), and an entity that ends without a beginning has that of the one before.
class EntityFinder {
 public:
  /// Places are those of this sentence; one below 0 is in a sentence before.
  std::vector<Entity> next(std::span<const std::string> tags);

 private:
  std::int64_t begin_ = 0;  // of the last entity, in places of the next sentence; before any, the first word of all
};

/// Whether the tag may not follow the one before it: I- of IOB2, and so M- and E- of BMES and IOBES, begin no entity
/// and continue only their own type. The tag before the first one is "O".
bool is_illegal(const std::string& before, const std::string& tag);

/// The pairs of neighbouring tags that is_illegal() names, and how often each comes.
class IllegalPairs {
 public:
  /// Counts those of a sentence. Returns the place of the first tag that may not stand there, if any.
  std::optional<std::size_t> add(std::span<const std::string> tags);
  const std::map<std::pair<std::string, std::string>, std::int64_t>& counts() const { return counts_; }
  std::int64_t sum() const;
  /// "O before I-PER (12)", the first of equals. Throws Error(Failure::bug) if there are none.
  std::string most_frequent() const;

 private:
  std::map<std::pair<std::string, std::string>, std::int64_t> counts_;
};

/// The figures of many sentences. What is undefined (no entity at all) is 0.
struct EntityScores {
  ClassFigures micro, macro, weighted;  ///< over all; the mean of the types; that mean by their support
  std::map<std::string, ClassFigures> types;
  double accuracy = 0;     ///< of the tags
  std::int64_t words = 0;  ///< tags in all
  IllegalPairs illegal;    ///< of predicted tags
};

/// Counts sentence after sentence, so that a file of any length can be scored in little memory.
class EntityCounter {
 public:
  /// The true and the predicted tags of a sentence. Throws Error(Failure::bug) if their numbers differ.
  void add(std::span<const std::string> truth, std::span<const std::string> predicted);
  EntityScores scores() const;

 private:
  EntityFinder truth_, predicted_;
  std::map<std::string, ClassCounts> types_;
  std::int64_t words_ = 0, right_ = 0;
  IllegalPairs illegal_;
};

}  // namespace bertrand::tasks
