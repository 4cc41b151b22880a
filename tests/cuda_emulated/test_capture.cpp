// Work that is captured and asked for again: its numbers, its memory, and what cannot be captured.
#include "cuda_emulated/against_cpu.h"
#include "support/refusal.h"
#include "tensor/cuda/handles.h"

using namespace bertrand;
using namespace bertrand::testing;
using support::refusal;

namespace {

/// A layer as BERT has them, from its inputs to numbers that others read.
struct Layer {
  Layer(DType dtype, Backend& gpu, Dim rows = 24)
      : x({rows, 32}, dtype, gpu),
        weight(noise({48, 32}, dtype, gpu, 2)),
        bias(noise({48}, dtype, gpu, 3)),
        back(noise({48, 32}, dtype, gpu, 4)),
        gamma(noise({32}, dtype, gpu, 5)),
        out({rows, 32}, DType::f32, gpu) {}

  void set(std::uint64_t key) const {
    Random random(key);
    std::vector<float> values(static_cast<std::size_t>(x.elements()));
    for (float& v : values) v = static_cast<float>(2 * random.uniform() - 1);
    ops::copy_into(ops::from_host(values, x.shape(), x.backend()), x);
  }
  void work() const {
    const Tensor wide = ops::linear_activation(x, weight, bias, Unary::gelu_tanh, false).y;
    const Tensor narrow = ops::matmul(ops::softmax(wide), back);
    ops::copy_into(ops::binary(Binary::mul, ops::binary(Binary::add, narrow, x), gamma), out);
  }
  std::vector<float> result() const { return ops::to_host<float>(out); }

  Tensor x, weight, bias, back, gamma, out;
};

/// What the capture of `body`'s requests becomes.
template <class Body>
cudaError_t outcome_of_capture(const Body& body) {
  const cuda::Stream stream;
  cuda::check_cuda(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal), "begin");
  body(stream.get());
  cudaGraph_t graph = nullptr;
  const cudaError_t error = cudaStreamEndCapture(stream.get(), &graph);
  cudaGraphDestroy(graph);
  return error;
}

}  // namespace

TEST_CASE("captured work is one launch and gives the bits of plain work on whatever its inputs hold by then") {
  for (const DType dtype : kFloating) {
    CAPTURE(name_of(dtype));
    const auto gpu = emulated_gpu();
    const Layer layer(dtype, *gpu);
    layer.set(1);
    const auto captured = gpu->capture([&] { layer.work(); });
    REQUIRE(captured);
    std::vector<std::vector<float>> seen;
    for (const std::uint64_t key : {7, 8, 9, 7}) {
      layer.set(key);
      layer.work();
      const std::vector<float> expected = layer.result();
      ops::fill(layer.out, 0);
      const Tensor other = noise({64, 64}, dtype, *gpu, key);  // takes memory that was free, and leaves other free
      gpu->synchronize();
      const int before = cuda::emulation::counts().launches;
      captured->run();
      CHECK(cuda::emulation::counts().launches == before + 1);
      CHECK(layer.result() == expected);
      seen.push_back(expected);
    }
    CHECK(seen[0] != seen[1]);
    CHECK(seen[0] == seen[3]);
  }
}

TEST_CASE("captures work in one block of memory, which is counted and goes with the last of them") {
  const auto gpu = emulated_gpu();
  const Layer layer(DType::f32, *gpu), larger(DType::f32, *gpu, 48), largest(DType::f32, *gpu, 100);
  for (const Layer* one : {&layer, &larger, &largest}) one->set(1);
  const auto in_use = [&] { return gpu->memory().in_use; };
  const std::size_t none = in_use();
  auto captured = gpu->capture([&] { layer.work(); });
  const std::size_t one = in_use();
  CHECK(one > none);
  CHECK(one < none + 24 * 4 * (48 + 48 + 32 + 32 + 32));  // what is freed in the work is used again in it
  CHECK(cuda::emulation::counts().bytes_in_use >= one);
  auto same = gpu->capture([&] { layer.work(); });
  CHECK(in_use() == one);
  auto twice = gpu->capture([&] { larger.work(); });
  CHECK(in_use() == one + 2 * (one - none));
  auto more = gpu->capture([&] { largest.work(); });
  const std::size_t three = in_use();
  CHECK(three > one + 2 * (one - none));
  for (const Layer* of : {&layer, &larger, &largest}) of->set(2);
  for (const auto& each : {&captured, &twice, &more, &same}) (*each)->run();
  const std::vector<float> got[] = {layer.result(), larger.result(), largest.result()};
  for (const Layer* of : {&layer, &larger, &largest}) of->work();
  CHECK(got[0] == layer.result());
  CHECK(got[1] == larger.result());
  CHECK(got[2] == largest.result());
  captured.reset();
  CHECK(in_use() == three);
  same.reset();
  CHECK(in_use() == three - (one - none));
  more.reset();
  twice.reset();
  CHECK(in_use() == none);
}

TEST_CASE("work that the host takes part in, or that keeps memory, is refused, and the GPU goes on") {
  const auto gpu = emulated_gpu();
  const Layer layer(DType::bf16, *gpu);
  layer.set(1);
  layer.work();
  const std::vector<float> expected = layer.result();
  const std::size_t before = gpu->memory().in_use;
  std::vector<float> values(24 * 32, 1);
  std::vector<Tensor> kept;
  const auto refused = [&](const std::function<void()>& work) {
    return refusal(Failure::bug, [&] {
      gpu->capture([&] {
        layer.work();
        work();
      });
    });
  };
  CHECK(refused([&] { gpu->upload(values.data(), layer.out); }) ==
        "capture: expected work that the device does alone, got an upload");
  CHECK(refused([&] { gpu->download(layer.out, values.data()); }) ==
        "capture: expected work that the device does alone, got a download");
  CHECK(refused([&] { gpu->download_later(layer.gamma); }) ==
        "capture: expected work that the device does alone, got a download");
  CHECK(refused([&] { gpu->synchronize(); }) == "capture: expected work that the device does alone, got a wait");
  CHECK(refused([&] { gpu->kernels()->first_non_finite(layer.out); }) ==
        "capture: expected work that the device does alone, got a download");
  CHECK(refused([&] { gpu->capture([] {}); }) == "capture: expected no other capture under way");
  CHECK(refused([&] { kept.emplace_back(Shape{8}, DType::f32, *gpu); }) ==
        "capture: expected work that frees the memory it takes, got one that keeps 1 pieces");
  kept.clear();
  CHECK(gpu->memory().in_use == before);
  layer.work();
  CHECK(layer.result() == expected);
  CHECK(gpu->capture([&] { layer.work(); }));
}

TEST_CASE("work that throws while it is captured throws what it threw, leaks nothing, and frees what it was to free") {
  const auto gpu = emulated_gpu();
  const Layer layer(DType::f32, *gpu);
  layer.set(1);
  const std::size_t before = gpu->memory().in_use, taken_before = cuda::emulation::counts().bytes_in_use;
  for (const int call : {1, 2}) {
    int calls = 0;
    auto from_before = std::make_unique<Tensor>(Shape{1000}, DType::u8, *gpu);
    CHECK_THROWS_WITH(gpu->capture([&] {
      layer.work();
      const Tensor taken({8}, DType::f32, *gpu);
      if (++calls < call) return;
      from_before.reset();
      throw std::runtime_error("on purpose");
    }),
                      "on purpose");
    CHECK(gpu->memory().in_use == before);
    CHECK(cuda::emulation::counts().bytes_in_use == taken_before);
    layer.work();
    const std::vector<float> expected = layer.result();
    ops::fill(layer.out, 0);
    gpu->capture([&] { layer.work(); })->run();
    CHECK(layer.result() == expected);
  }
}

TEST_CASE("a capture that finds no memory is an error in one line and leaks nothing") {
  const auto gpu = emulated_gpu();
  const Layer layer(DType::f16, *gpu);
  layer.set(1);
  const std::size_t before = gpu->memory().in_use;
  const int first = cuda::emulation::counts().allocations;
  gpu->capture([&] { layer.work(); });
  const int needed = cuda::emulation::counts().allocations - first;
  for (int number = 1; number <= needed; ++number) {
    CAPTURE(number);
    cuda::emulation::fail_allocation(number);
    const std::string message = refusal(Failure::memory, [&] { gpu->capture([&] { layer.work(); }); });
    cuda::emulation::fail_allocation(0);
    CHECK(message.starts_with(number < needed ? "out of memory: " : "out of memory: capture: needed "));
    CHECK(gpu->memory().in_use == before);
  }
  cuda::emulation::fail_instantiation();
  CHECK(refusal(Failure::memory, [&] { gpu->capture([&] { layer.work(); }); }) == "out of memory: cuda: capture");
  CHECK(gpu->memory().in_use == before);
  CHECK(gpu->capture([&] { layer.work(); }));
}

TEST_CASE("an index out of range is refused after captured work, and only then") {
  const auto gpu = emulated_gpu();
  const Tensor table = noise({5, 8}, DType::f32, *gpu, 1), rows({3}, DType::i32, *gpu), out({3, 8}, DType::f32, *gpu);
  const auto set = [&](const std::vector<std::int32_t>& values) { gpu->upload(values.data(), rows); };
  set({4, 0, 2});
  const auto captured = gpu->capture([&] { ops::copy_into(ops::gather(table, rows), out); });
  CHECK_NOTHROW(ops::to_host<float>(out));
  for (int i = 0; i < 2; ++i) {
    set({4, 5, 2});
    captured->run();
    CHECK_THROWS_WITH_AS(ops::to_host<float>(out), "gather: row number 1 is 5, expected 0 to 4", Error);
    set({1, 1, 3});
    captured->run();
    CHECK(ops::to_host<float>(out) == ops::to_host<float>(ops::gather(table, rows)));
  }
}

TEST_CASE("a GPU that is lost is an error when captured work runs") {
  const auto gpu = emulated_gpu();
  const Layer layer(DType::f32, *gpu);
  layer.set(1);
  const auto captured = gpu->capture([&] { layer.work(); });
  cuda::emulation::lose_gpu(0);
  CHECK_FALSE(refusal(Failure::distributed, [&] { captured->run(); }).empty());
  cuda::emulation::lose_gpu(-1);
}

TEST_CASE("the emulation refuses in a captured stream what CUDA refuses, and the capture with it") {
  const cuda::Pinned pinned(16);
  float host[4] = {}, more[4] = {};
  CHECK(outcome_of_capture([&](cudaStream_t stream) {
          CHECK(cudaMemsetAsync(host, 1, sizeof host, stream) == cudaSuccess);
          CHECK(cudaMemcpyAsync(host, more, sizeof host, cudaMemcpyDeviceToDevice, stream) == cudaSuccess);
          CHECK(cudaMemcpyAsync(pinned.data(), host, 16, cudaMemcpyDeviceToHost, stream) == cudaSuccess);
          CHECK(host[0] == 0);  // nothing is done yet
        }) == cudaSuccess);
  const auto refuses = [](const auto& request) {
    return outcome_of_capture([&](cudaStream_t stream) {
             CHECK(request(stream) == cudaErrorStreamCaptureUnsupported);
           }) == cudaErrorStreamCaptureInvalidated;
  };
  CHECK(refuses([](cudaStream_t stream) { return cudaStreamSynchronize(stream); }));
  CHECK(refuses(
      [&](cudaStream_t stream) { return cudaMemcpyAsync(host, more, sizeof host, cudaMemcpyDeviceToHost, stream); }));
  CHECK(refuses(
      [&](cudaStream_t stream) { return cudaMemcpyAsync(host, more, sizeof host, cudaMemcpyHostToDevice, stream); }));
  CHECK(refuses([](cudaStream_t stream) {
    void* data = nullptr;
    return cudaMallocAsync(&data, 16, stream);
  }));
  CHECK(refuses([](cudaStream_t stream) { return cuda::emulation::begin_work(stream); }));
  outcome_of_capture([](cudaStream_t stream) {
    const cuda::Event event;
    event.record(stream);
    CHECK_FALSE(refusal(Failure::distributed, [&] { event.is_done(); }).empty());
    CHECK_FALSE(refusal(Failure::distributed, [&] { event.wait(); }).empty());
    void* data = nullptr;
    CHECK(cudaMallocHost(&data, 16) == cudaErrorStreamCaptureUnsupported);
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaErrorInvalidValue);
  });
}
