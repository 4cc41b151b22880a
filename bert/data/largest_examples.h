// Made-up pre-training examples that are at least as large as any of a set.
#pragma once
#include <algorithm>
#include <iterator>

#include "bert/data/pretraining_examples.h"

namespace bertrand::data {

/// `count` examples of the sizes that `set.largest` says, all of token 0. They stand for those of any epoch.
class LargestExamples : public PretrainingExamples {
 public:
  LargestExamples(const PretrainingExamples& set, std::int64_t count) : sizes_(set.largest(count)) {}

  std::int64_t examples(std::int64_t) override { return static_cast<std::int64_t>(sizes_.size()); }
  PretrainingExample example(std::int64_t, std::int64_t number) override {
    const ExampleSize size = sizes_.at(static_cast<std::size_t>(number));
    PretrainingExample example;
    example.token_ids.resize(static_cast<std::size_t>(size.tokens));
    example.token_types.resize(static_cast<std::size_t>(size.tokens));
    for (std::int32_t i = 0; i < size.masked; ++i) example.masked_positions.push_back(i);
    example.masked_ids.resize(static_cast<std::size_t>(size.masked));
    return example;
  }
  std::int64_t tokens(std::int64_t, std::int64_t number) override {
    return sizes_.at(static_cast<std::size_t>(number)).tokens;
  }
  std::int64_t masked(std::int64_t, std::int64_t number) override {
    return sizes_.at(static_cast<std::size_t>(number)).masked;
  }
  std::int64_t longest() const override { return sizes_.empty() ? 0 : sizes_.front().tokens; }
  std::vector<ExampleSize> largest(std::int64_t count) const override {
    return {sizes_.begin(), sizes_.begin() + std::min<std::ptrdiff_t>(count, std::ssize(sizes_))};
  }
  std::size_t bytes() const override { return sizes_.size() * sizeof(ExampleSize); }

 private:
  std::vector<ExampleSize> sizes_;  // the largest first
};

}  // namespace bertrand::data
