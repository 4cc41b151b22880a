// Intervals of confidence by the bootstrap: the figure of rows that are drawn again and again.
#pragma once
#include <functional>
#include <map>
#include <span>
#include <string>

#include "bert/report/rows.h"

namespace bertrand::report {

/// The figures of rows by their numbers, of which some may come several times: "accuracy", ….
using FiguresOf = std::function<std::map<std::string, double>(std::span<const std::size_t> drawn)>;
/// An interval [low, high] for each figure ("eval_accuracy", …) of `rows` rows, sentences or questions: 95 % of its
/// values lie in it if as many are drawn with replacement, `resamples` times, which is "resamples". Nothing of fewer
/// than two. The same rows give the same interval. Throws Error(Failure::interrupted) if a signal asks to leave.
io::Json intervals(std::size_t rows, std::size_t resamples, const FiguresOf& figures);
/// How often sentences and questions are drawn.
constexpr std::size_t kResamples = 1000;
/// That of each known figure of `rows`.
io::Json intervals(const Rows& rows);

}  // namespace bertrand::report
