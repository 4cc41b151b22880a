// Which GPUs are refused, and what becomes of errors, of memory and of copies.
#include <cstdlib>
#include <thread>

#include "cuda_emulated/against_cpu.h"
#include "tensor/backends.h"

using namespace bertrand;
using namespace bertrand::testing;

TEST_CASE("the emulated GPU calls itself cuda:0 and says what it is") {
  const auto gpu = emulated_gpu();
  CHECK(gpu->device().name() == "cuda:0");
  CHECK(gpu->description() == "cuda:0, emulated on the processor, 17 GB");
  CHECK_THROWS_WITH_AS(emulated_gpu({.index = 4}), "--device cuda:4: there are 4 GPUs, numbered from 0", Error);
}

TEST_CASE("the kernels of several GPUs are loaded at once unless the environment says otherwise") {
  unsetenv("CUDA_MODULE_LOADING");
  emulated_gpu();
  CHECK(!getenv("CUDA_MODULE_LOADING"));
  emulated_gpu({.beside_others = true});
  const char* set = getenv("CUDA_MODULE_LOADING");
  REQUIRE(set);
  CHECK(std::string(set) == "EAGER");
  setenv("CUDA_MODULE_LOADING", "LAZY", 1);
  emulated_gpu({.beside_others = true});
  CHECK(std::string(getenv("CUDA_MODULE_LOADING")) == "LAZY");
  unsetenv("CUDA_MODULE_LOADING");
}

TEST_CASE("a GPU that is too old is refused by name") {
  cuda::emulation::set_capability(7, 5);
  CHECK_THROWS_WITH_AS(
      emulated_gpu(),
      "--device cuda:0: expected a GPU of compute capability 8.0 or newer, emulated on the processor has 7.5", Error);
  cuda::emulation::set_capability(9, 0);
}

TEST_CASE("a build without kernels for the GPU says so") {
  cuda::emulation::build_for(10);
  CHECK_THROWS_WITH_AS(emulated_gpu(),
                       "--device cuda:0: expected a GPU that this build has kernels for, emulated on the processor "
                       "has 9.0 (no kernel image is available for execution on the device); hint: "
                       "-DCMAKE_CUDA_ARCHITECTURES=90",
                       Error);
  cuda::emulation::build_for(8);
  CHECK_NOTHROW(emulated_gpu());
}

TEST_CASE("a GPU that is lost is an error of its own, at whatever launch it happens, and ends no program") {
  bool in_library = false;
  for (const int launches : {1, 2, 3, 4, 5}) {
    CAPTURE(launches);
    const auto gpu = emulated_gpu();
    cuda::emulation::lose_gpu(launches);
    try {
      const Tensor x = noise({8, 8}, DType::bf16, *gpu, 1);
      ops::item(ops::sum(ops::matmul(x, x)));
      CHECK(false);
    } catch (const Error& error) {
      CHECK(error.failure() == Failure::distributed);
      CHECK(std::string(error.what()).starts_with("cuda: "));
      if (std::string(error.what()) == "cuda: cuBLAS: matmul: CUBLAS_STATUS_EXECUTION_FAILED") in_library = true;
    }
    cuda::emulation::lose_gpu(-1);
  }
  CHECK(in_library);
}

TEST_CASE("memory goes back on the GPU that it came from also by a thread that never used that one") {
  auto gpu = emulated_gpu({.index = 2});
  Tensor x = ops::full({9}, 1, DType::f32, *gpu);
  const auto gpu_after = [](const auto& work) {
    int index = 0;
    std::thread([&] {
      work();
      cudaGetDevice(&index);
    }).join();
    return index;
  };
  CHECK(gpu_after([&] { x = {}; }) == 2);
  CHECK(gpu_after([&] { gpu.reset(); }) == 2);
}

TEST_CASE("a staging buffer is filled again only when its copy has ended") {
  const auto gpu = emulated_gpu();
  std::vector<Tensor> tensors;
  std::vector<std::vector<std::int32_t>> values;
  const std::int64_t before = cuda::emulation::synchronizations();
  for (int i = 0; i < 100; ++i) {  // more than there are buffers, and nothing between that would end a copy
    values.emplace_back(100, i);
    tensors.push_back(ops::from_host(values.back(), {100}, *gpu));
    if (i < 30) CHECK(cuda::emulation::synchronizations() == before);  // the batches of a few steps
  }
  CHECK(cuda::emulation::synchronizations() > before);
  for (std::size_t i = 0; i < tensors.size(); ++i) CHECK(ops::to_host<std::int32_t>(tensors[i]) == values[i]);
}

TEST_CASE("what is larger than a staging buffer arrives whole") {
  const auto gpu = emulated_gpu();
  std::vector<std::int32_t> values(3'000'001);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int32_t>(i * 2654435761u);
  const Tensor on_gpu = ops::from_host(values, {static_cast<Dim>(values.size())}, *gpu);
  CHECK(ops::to_host<std::int32_t>(on_gpu) == values);
}

TEST_CASE("an allocation that finds memory when the pool gives back what it keeps is no error") {
  const auto gpu = emulated_gpu();
  cuda::emulation::fragment_memory();
  CHECK_NOTHROW(Tensor({1000}, DType::u8, *gpu));
}

TEST_CASE("a GPU that is full says what was needed and what is in use, and goes on when memory is freed") {
  const auto gpu = emulated_gpu();
  cuda::emulation::limit_memory(1 << 20);
  const std::size_t before = gpu->memory().in_use;
  {
    const Tensor most({900'000}, DType::u8, *gpu);
    CHECK(gpu->memory().in_use == before + 900'000);
    CHECK_THROWS_WITH_AS(ops::full({200'000}, 1, DType::u8, *gpu),
                         doctest::Contains("out of memory: full: needed 200000 bytes, in use 900000 bytes of 1048576"),
                         Error);
  }
  CHECK(gpu->memory().in_use == before);
  CHECK_NOTHROW(Tensor({200'000}, DType::u8, *gpu));
  cuda::emulation::limit_memory(std::size_t{16} << 30);
}
