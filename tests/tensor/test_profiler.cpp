#include <doctest/doctest.h>

#include <thread>

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
