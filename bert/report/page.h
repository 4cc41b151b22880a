// The page without its numbers: HTML, styles and script, as page.html has them.
#pragma once
#include <string_view>

namespace bertrand::report {

/// Has the place of the numbers, kNumbers, once.
std::string_view page_template();
inline constexpr std::string_view kNumbers = "\"the numbers of the runs\"";

}  // namespace bertrand::report
