// What a Tensor is, what an op checks, and that a device is what computes.
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "tensor/backends.h"
#include "tensor/ops.h"

using namespace bertrand;

namespace {

void print(const char* name, const Tensor& x) {
  std::printf("%-10s", name);
  for (const double v : ops::to_host<double>(x)) std::printf(" %g", v);
  std::printf("\n");
}

/// Prints the error that `work` ends with.
template <class Work>
void expect_error(const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    std::printf("%s\n", error.what());
  }
}

void show_handles(Backend& backend) {
  const std::vector<float> values{1, 2, 3, 4, 5, 6};
  const Tensor x = ops::from_host(values, {2, 3}, backend);
  const Tensor second = x.rows(1, 2);  // a window: no element is copied
  ops::fill(second, 9);                // so x sees it
  print("x", x);
  print("second", second);
  print("tall", x.reshape({3, 2}));
}

void show_checks(Backend& backend) {
  const Tensor a = ops::full({2, 3}, 1, DType::f32, backend), b = ops::full({2, 3}, 1, DType::f32, backend);
  expect_error([&] { ops::matmul(a, b); });
  expect_error([&] { a.rows(1, 3); });
  expect_error([&] { ops::binary(Binary::add, a, ops::full({2}, 1, DType::f32, backend)); });
  const std::vector<std::int32_t> rows{0, 2};
  expect_error([&] { ops::gather(a, ops::from_host(rows, {2}, backend)); });
}

void show_broadcasting(Backend& backend) {
  const std::vector<float> values{1, 2, 3, 4, 5, 6}, row{10, 20, 30};
  const Tensor a = ops::from_host(values, {2, 3}, backend), b = ops::from_host(row, {3}, backend);
  print("a + b", ops::binary(Binary::add, a, b));  // b is repeated for every row
  print("summed", ops::sum_to(a, {3}));            // the other way: rows are added up
}

void show_types(Backend& backend) {
  const std::vector<double> tenth{0.1};
  const Tensor x = ops::from_host(tenth, {1}, backend);
  for (const DType type : {DType::f64, DType::f32, DType::f16, DType::bf16})
    std::printf("%-5s %.17f\n", std::string(name_of(type)).c_str(), ops::to_host<double>(ops::cast(x, type))[0]);
}

void show_devices() {
  const auto cpu = open_cpu({.threads = 1}), gpu = open_cuda({.emulated = true});
  const std::vector<float> values{1, 2, 3, 4}, weight{1, 0, 1, 0, 1, 1};
  for (Backend* const backend : {cpu.get(), gpu.get()})
    print(backend == gpu.get() ? "gpu" : "cpu",
          ops::matmul(ops::from_host(values, {2, 2}, *backend), ops::from_host(weight, {2, 3}, *backend)));
}

}  // namespace

int main() {
  const auto backend = open_cpu({.threads = 1});
  show_handles(*backend);
  show_checks(*backend);
  show_broadcasting(*backend);
  show_types(*backend);
  show_devices();
}
