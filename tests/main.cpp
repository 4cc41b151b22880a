// The main of every test program: doctest's own, and a run of no test case fails. A filter that matches nothing, as a
// name with a comma that is not written "\,", would pass otherwise. A single test case that is right as far as it went,
// and said that it left something out, ends with 77, so that ctest calls it skipped: one that fails is a failure
// whatever it left out. Real data beside the repository may be absent, but not in part: if they are there, to leave
// something of them out is a failure, too.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <atomic>
#include <filesystem>
#include <iostream>
#include <string>
#include <string_view>

#include "support/paths.h"

namespace {

int matched = -1;  // test cases that passed the filters; −1: nothing was asked to run
std::atomic<bool> left_out = false, lost = false;
const std::string kData = bertrand::paths::source + "/../shared";

struct Counter : doctest::IReporter {
  explicit Counter(const doctest::ContextOptions&) {}
  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats& stats) override {
    matched = static_cast<int>(stats.numTestCasesPassingFilters);
  }
  void test_case_start(const doctest::TestCaseData&) override {}
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_end(const doctest::CurrentTestCaseStats&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData& message) override {
    const std::string_view text = message.m_string.c_str();
    if (!text.starts_with("SKIPPED")) return;
    left_out = true;
    if (text.find(kData + "/") != text.npos && std::filesystem::exists(kData)) lost = true;
  }
  void test_case_skipped(const doctest::TestCaseData&) override {}
};
REGISTER_LISTENER("counter", 0, Counter);

}  // namespace

int main(int argc, char** argv) {
  doctest::Context context(argc, argv);
  const int status = context.run();
  constexpr int kSkipped = 77;
  if (status == 0 && lost) {
    std::cerr << "error: tests: expected all real data in " << kData
              << ", got a part of them; hint: SKIPPED says what is not there\n";
    return 1;
  }
  if (status == 0 && matched == 1 && left_out) return kSkipped;
  if (context.shouldExit() || matched != 0) return status;
  std::cerr
      << "error: tests: expected a filter that matches a test case, got none; hint: -ltc lists the names; a comma "
         "in a name is written \\,\n";
  return 1;
}
