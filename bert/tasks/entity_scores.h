// Entities in sequences of tags, and how well predicted ones agree with the true ones: the figures of seqeval, which
// follows conlleval (Tjong Kim Sang and Buchholz 2000).
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace bertrand::tasks {

/// The words [first, last] of a sentence, from 0.
struct Entity {
  std::string type;  ///< what follows the hyphen: PER of B-PER; "_" if nothing does
  std::int64_t first = 0, last = 0;
  auto operator<=>(const Entity&) const = default;
};

/// The entities that the tags of one sentence name. Tags are O, or B, I, E or S with a type. As in seqeval, a tag that
/// cannot stand where it stands (I-PER after O or after B-LOC) begins an entity of its own.
std::vector<Entity> entities(std::span<const std::string> tags);

/// Whether the tag may not follow the one before it in IOB2: I- begins no entity and continues only its own type. The
/// tag before the first one is "O".
bool is_illegal(const std::string& before, const std::string& tag);

struct EntityFigures {
  double precision = 0, recall = 0, f1 = 0;
  std::int64_t support = 0;  ///< true entities
};

/// Of many sentences. What is undefined (no entity at all) is 0.
struct EntityScores {
  EntityFigures micro, macro, weighted;  ///< over all; the mean of the types; that mean by their support
  std::map<std::string, EntityFigures> types;
  double accuracy = 0;       ///< of the tags
  std::int64_t words = 0;    ///< tags in all
  std::int64_t illegal = 0;  ///< predicted tags that is_illegal() names
};

/// Counts sentence after sentence, so that a file of any length can be scored in little memory.
class EntityCounter {
 public:
  /// The true and the predicted tags of a sentence. Throws Error(Failure::bug) if their numbers differ.
  void add(std::span<const std::string> truth, std::span<const std::string> predicted);
  EntityScores scores() const;

 private:
  struct Counts {
    std::int64_t truth = 0, predicted = 0, both = 0;
  };
  static EntityFigures figures(const Counts& counts);

  std::map<std::string, Counts> types_;
  std::int64_t words_ = 0, right_ = 0, illegal_ = 0;
};

}  // namespace bertrand::tasks
