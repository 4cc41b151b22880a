#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tensor/backends.h"
#include "tensor/ops.h"
#include "tensor/profiler.h"

using namespace bertrand;
using namespace std::chrono_literals;

TEST_CASE("a collective that overlaps with computing is hidden but for the time that the replica waited for it") {
  Profiler profiler;
  const Profiler::Clock::time_point t = Profiler::Clock::now();
  profiler.add({"gemm", t, t + 10ms, {.flops = 1e9}});
  profiler.add({"all_reduce_sum", t + 5ms, t + 14ms, {.bytes = 1000}, Profiler::Kind::collective, true});
  profiler.add({"all_reduce_sum", t + 14ms, t + 20ms, {.bytes = 500}, Profiler::Kind::collective, true});
  profiler.add({"wait for gradients", t + 12ms, t + 20ms, {}, Profiler::Kind::wait});
  profiler.add({"broadcast", t + 20ms, t + 23ms, {.bytes = 8}, Profiler::Kind::collective});
  const std::string table = profiler.table();
  const auto row = [&](const std::string& name, std::size_t from) {
    const std::size_t begin = table.find("\n" + name + " ", from) + 1;
    return table.substr(begin, table.find('\n', begin) - begin);
  };
  const std::size_t collectives = table.find("\ncollective ");
  REQUIRE(collectives != std::string::npos);
  const auto is = [](const std::string& text, const std::string& name, const std::string& figures) {
    std::string squeezed;
    for (const char c : text)
      if (c != ' ' || (!squeezed.empty() && squeezed.back() != ' ')) squeezed += c;
    return squeezed == name + " " + figures;
  };
  // calls, ms, ms not hidden, bytes
  CHECK(is(row("all_reduce_sum", collectives), "all_reduce_sum", "2 15.000 8.000 1500"));
  CHECK(is(row("broadcast", collectives), "broadcast", "1 3.000 3.000 8"));
  // The replica's own time: 10 of computing, 8 of waiting, 3 for the broadcast.
  CHECK(row("all ops", 0).find("3       21.000") != std::string::npos);
  CHECK(table.find("all_reduce_sum") > collectives);
  CHECK(std::ranges::count(table, '\n') == 1 + 3 + 1 + 1 + 2);  // ops and collectives, each below its heading
}

TEST_CASE("a row of the table has its share of the time and its rates, and there are no rows of what did not happen") {
  Profiler profiler;
  const Profiler::Clock::time_point t = Profiler::Clock::now();
  profiler.add({"norm", t, t + 1ms});
  profiler.add({"gemm", t, t + 3ms, {.flops = 6e6, .bytes = 3e6}});
  std::vector<std::string> words, rows;
  std::istringstream text(profiler.table());
  for (std::string row; std::getline(text, row);) rows.push_back(row);
  REQUIRE(rows.size() == 4);  // no collective, and no event that the trace lacks
  for (const std::string& row : {rows[1], rows[2]}) {
    std::istringstream in(row);
    for (std::string word; in >> word;) words.push_back(word);
  }
  CHECK(words == std::vector<std::string>{"gemm", "1", "3.000", "75.0%", "2.0", "1.0", "3000000",  //
                                          "norm", "1", "1.000", "25.0%", "-", "-", "0"});
  Profiler instant;
  instant.add({"norm", t, t});
  CHECK(instant.table().find("nan") == std::string::npos);
}

TEST_CASE("a trace shows what overlaps with computing in a row of its own") {
  Profiler profiler;
  const auto backend = open_cpu({.threads = 1});
  backend->profiler = &profiler;
  {
    const Span op(*backend, "gemm");
    std::thread([&] {
      const Span overlapping(*backend, "all_reduce_sum", {.bytes = 7}, Profiler::Kind::collective, true);
    }).join();
  }
  const std::string trace = profiler.chrome_trace();
  CHECK(trace.find("\"name\":\"gemm\",\"ph\":\"X\",\"pid\":0,\"tid\":0") != std::string::npos);
  CHECK(trace.find("\"name\":\"all_reduce_sum\",\"ph\":\"X\",\"pid\":0,\"tid\":1") != std::string::npos);
}

TEST_CASE("a trace has so many events as asked for, and the table counts all and says so") {
  Profiler profiler(2);
  const Profiler::Clock::time_point t = Profiler::Clock::now();
  for (const char* name : {"gemm", "norm", "sum"}) profiler.add({name, t, t + 1ms});
  const std::string trace = profiler.chrome_trace(), table = profiler.table();
  CHECK(trace.find("\"gemm\"") != std::string::npos);
  CHECK(trace.find("\"norm\"") != std::string::npos);
  CHECK(trace.find("\"sum\"") == std::string::npos);
  CHECK(trace.find(",\"dur\":1000.000,") != std::string::npos);     // in microseconds
  CHECK(std::stod(trace.substr(trace.find("\"ts\":") + 5)) < 1e6);  // from the profiler's beginning on
  CHECK(table.find("\nsum ") != std::string::npos);
  CHECK(table.find("3        3.000  100.0%") != std::string::npos);
  CHECK(table.find("the trace has the first 2 events; 1 later ones are in the rows of ops alone\n") !=
        std::string::npos);
}

TEST_CASE("the totals of a profile are those of its ops, the longest first") {
  Profiler profiler;
  const Profiler::Clock::time_point t = Profiler::Clock::now();
  profiler.add({"norm", t, t + 1ms, {.bytes = 8}});
  profiler.add({"gemm", t, t + 10ms, {.flops = 1e9}});
  profiler.add({"gemm", t, t + 10ms, {.flops = 1e9}});
  profiler.add({"all_reduce_sum", t, t + 50ms, {.bytes = 8}, Profiler::Kind::collective, true});
  const std::string totals = profiler.totals();
  CHECK(totals.find("{\"name\":\"gemm\",\"calls\":2,\"seconds\":0.020000,\"flops\":2000000000,\"bytes\":0},\n"
                    "{\"name\":\"norm\",\"calls\":1,\"seconds\":0.001000,\"flops\":0,\"bytes\":8}\n]}") !=
        std::string::npos);
}

TEST_CASE("a product works as many flops as it has sums of products, and moves its factors and itself") {
  Profiler profiler;
  const auto backend = open_cpu({.threads = 1});
  const Tensor a = ops::full({2, 3}, 1, DType::f32, *backend), b = ops::full({3, 4}, 1, DType::f32, *backend);
  backend->profiler = &profiler;
  ops::matmul(a, b);
  const std::string totals = profiler.totals();
  CHECK(totals.find("\"name\":\"gemm\"") != std::string::npos);
  CHECK(totals.find("\"flops\":48,\"bytes\":104}") != std::string::npos);  // 2 · 2 · 4 · 3, (6 + 12 + 8) · 4
}

TEST_CASE("attention works as many flops as its two products have, of sequences of equal length") {
  const auto backend = open_cpu({.threads = 1});
  const Tensor qkv = ops::full({4, 6}, 1, DType::f32, *backend);
  const auto totals = [&](const std::vector<std::int32_t>& offsets, Dim longest) {
    const Tensor places = ops::from_host(offsets, {static_cast<Dim>(offsets.size())}, *backend);
    Profiler profiler;
    backend->profiler = &profiler;
    ops::attention(qkv, {.offsets = places, .heads = 1, .longest = longest});
    backend->profiler = nullptr;
    return profiler.totals();
  };
  // 2 products · 2 · 4 tokens · so many keys · hidden 2; queries, keys, values and the result
  CHECK(totals({0, 4}, 4).find("\"flops\":128,\"bytes\":128}") != std::string::npos);
  CHECK(totals({0, 2, 4}, 2).find("\"flops\":64,\"bytes\":128}") != std::string::npos);
}

TEST_CASE("an op takes the time from its begin to its end") {
  Profiler profiler;
  const auto backend = open_cpu({.threads = 1});
  backend->profiler = &profiler;
  const auto begin = Profiler::Clock::now();
  {
    const Span op(*backend, "sleep");
    std::this_thread::sleep_for(2ms);
  }
  const double most = std::chrono::duration<double>(Profiler::Clock::now() - begin).count();
  const std::string totals = profiler.totals(), key = "\"calls\":1,\"seconds\":";
  const std::size_t at = totals.find(key);
  REQUIRE(at != std::string::npos);
  const double seconds = std::stod(totals.substr(at + key.size()));
  CHECK(seconds >= 0.002);
  CHECK(seconds <= most + 1e-6);  // it is said to a microsecond
}
