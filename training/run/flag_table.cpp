// Kinds of flags, and what is read off the table.
#include "training/run/flag_table.h"

#include <algorithm>

namespace bertrand::training {

bool is_given(const std::string& flag, const std::vector<std::string>& command) {
  return std::ranges::any_of(command,
                             [&](const std::string& word) { return word == flag || word.starts_with(flag + "="); });
}

Flag& FlagTable::add(const FlagText& text, Flag::Target target) {
  flags_.push_back({.name = text.name,
                    .type = text.type,
                    .help = text.help,
                    .group = heading_,
                    .role = text.role,
                    .target = std::move(target),
                    .words = text.words});
  return flags_.back();
}

Flag& FlagTable::text(FlagText text, std::string& member, const std::function<void(const std::string& value)>& check) {
  if (text.type.empty()) text.type = "NAME";
  return add(text, {.set =
                        [&member, check](const std::vector<std::string>& values) {
                          if (check) check(values.front());
                          member = values.front();
                        },
                    .value = [&member] { return member; }});
}

Flag& FlagTable::path(FlagText text, std::filesystem::path& member) {
  if (text.type.empty()) text.type = "FILE";
  return add(text, {.set = [&member](const std::vector<std::string>& values) { member = values.front(); },
                    .value = [&member] { return member.string(); }});
}

Flag& FlagTable::paths(FlagText text, std::vector<std::filesystem::path>& member) {
  if (text.type.empty()) text.type = "FILE";
  Flag& flag = add(
      text, {.set = [&member](const std::vector<std::string>& values) { member.assign(values.begin(), values.end()); },
             .value = [&member] { return fmt::format("{} files", member.size()); }});
  flag.several = true;
  return flag;
}

Flag& FlagTable::texts(FlagText text, std::vector<std::string>& member) {
  if (text.type.empty()) text.type = "TEXT";
  Flag& flag = add(text, {.set = [&member](const std::vector<std::string>& values) { member = values; },
                          .value = [&member] { return fmt::format("{}", fmt::join(member, " ")); }});
  flag.several = true;
  return flag;
}

Flag& FlagTable::toggle(FlagText text, bool& member) {
  return add(text, {.set = [&member](const std::vector<std::string>& values) { member = values.front() == "true"; },
                    .value = [&member] { return fmt::format("{}", member); }});
}

Flag& FlagTable::page(FlagText text, std::function<std::string()> print) {
  Flag& flag = add(text, {.set = [](const std::vector<std::string>&) {}, .value = [] { return std::string("false"); }});
  flag.page = std::move(print);
  return flag;
}

const Flag& FlagTable::flag(const std::string& name) const {
  for (const Flag& flag : flags_)
    if (flag.name == name) return flag;
  fail(Failure::bug, "flags: expected one of the table, got {}", name);
}

FlagValues FlagTable::values(Role role) const {
  FlagValues values;
  for (const Flag& flag : flags_)
    if (flag.role == role) values.emplace_back(flag.name, flag.target.value());
  return values;
}

}  // namespace bertrand::training
