// Measures what bounds a step on a GPU: a square matrix product of random numbers, and a copy of a large tensor.
// Prints one JSON line: TFLOP/s, GB/s read and written.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>

#include "tensor/backends.h"
#include "tensor/ops.h"
#include "tensor/random.h"

using namespace bertrand;

namespace {

/// Random bits of a few values: what they are changes how much power a product draws.
Tensor random_matrix(Dim size, DType dtype, std::uint64_t key, Backend& backend) {
  Random random(key);
  std::vector<float> some(1 << 20);
  for (float& v : some) v = static_cast<float>(random.uniform() + random.uniform() + random.uniform() - 1.5);
  std::vector<float> values(static_cast<std::size_t>(size * size));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = some[(i * 7919 + i / some.size()) % some.size()];
  return ops::cast(ops::from_host(values, {size, size}, backend), dtype);
}

/// Seconds that one call of `work` takes: the median of blocks that last `seconds` together.
template <class Body>
double seconds_of(Backend& backend, double seconds, const Body& work) {
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  };
  work();
  backend.synchronize();
  std::vector<double> times;
  for (const auto begin = Clock::now(); times.size() < 3 || since(begin) < seconds;) {
    const auto block = Clock::now();
    for (int i = 0; i < 4; ++i) work();
    backend.synchronize();
    times.push_back(since(block) / 4);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Measures what bounds a step on a GPU.");
  std::string device = "cuda";
  Dim size = 8192;
  double seconds = 2;
  app.add_option("--device", device, "cuda:N or emulated-cuda");
  app.add_option("--size", size, "rows of the matrices");
  app.add_option("--seconds", seconds, "for each figure");
  CLI11_PARSE(app, argc, argv);
  try {
    const std::size_t colon = device.find(':');
    const auto backend = open_cuda({.index = colon == std::string::npos ? 0 : std::stoi(device.substr(colon + 1)),
                                    .emulated = device.starts_with("emulated-"),
                                    .measured_products = true});
    const Tensor a = random_matrix(size, DType::bf16, 1, *backend), b = random_matrix(size, DType::bf16, 2, *backend),
                 out({size, size}, DType::bf16, *backend);
    const double product =
        seconds_of(*backend, seconds, [&] { ops::matmul(a, b, {.transpose_b = true, .into = {out}}); });
    const Tensor from({size * size * 16}, DType::f32, *backend), to({size * size * 16}, DType::f32, *backend);
    ops::fill(from, 1);
    const double copy = seconds_of(*backend, seconds, [&] { ops::copy_into(from, to); });
    const auto n = static_cast<double>(size);
    fmt::print("{{\"device\":\"{}\",\"size\":{},\"matmul_tflops\":{:.4f},\"copy_gbs\":{:.2f}}}\n",
               backend->description(), size, 2 * n * n * n / product / 1e12,
               2 * static_cast<double>(from.bytes()) / copy / 1e9);
  } catch (const Error& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return static_cast<int>(error.failure());
  }
  return 0;
}
