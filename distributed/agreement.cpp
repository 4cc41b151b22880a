#include "distributed/agreement.h"

#include <sstream>

#include "distributed/exchange.h"
#include "io/error.h"
#include "io/machine.h"

namespace bertrand::distributed {
namespace {

/// The host, then a line a fact: a name, a tab, a value.
///
/// Processes of other builds are told apart by this first exchange, so its layout stays as it is: broadcast() sends the
/// number of bytes as one f64, then the bytes as u8 (distributed/exchange.cpp).
std::string as_text(const Facts& facts) {
  std::string text = io::host_name() + "\n";
  for (const auto& [name, value] : facts) text += name + "\t" + value + "\n";
  return text;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// "--seed is 42" of the line "--seed\t42".
std::string phrase(const std::string& line) {
  const std::size_t tab = line.find('\t');
  return tab == std::string::npos ? "there is nothing" : line.substr(0, tab) + " is " + line.substr(tab + 1);
}

void compare(const std::vector<std::string>& first, const std::vector<std::string>& other, int rank) {
  for (std::size_t i = 1; i < std::max(first.size(), other.size()); ++i) {
    const std::string a = i < first.size() ? first[i] : "", b = i < other.size() ? other[i] : "";
    if (a != b)
      fail(Failure::usage,
           "processes: expected the same run in all, but in process 0 (host {}) {}, in process {} (host {}) {}",
           first.at(0), phrase(a), rank, other.at(0), phrase(b));
  }
}

}  // namespace

void require_agreement(Collective& processes, Backend& backend, const Facts& facts) {
  const std::string mine = as_text(facts);
  const std::vector<std::string> first = lines_of(broadcast(processes, backend, mine, 0));
  for (int rank = 1; rank < processes.size(); ++rank)
    compare(first, lines_of(broadcast(processes, backend, mine, rank)), rank);
}

}  // namespace bertrand::distributed
