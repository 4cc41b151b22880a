#include "nn/tensor_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <span>
#include <string_view>

namespace bertrand::nn {
namespace {

/// What a tensor of each type is called in a file.
constexpr std::pair<DType, std::string_view> kTypes[] = {
    {DType::f64, "F64"}, {DType::f32, "F32"}, {DType::bf16, "BF16"}, {DType::f16, "F16"},
    {DType::i64, "I64"}, {DType::i32, "I32"}, {DType::u8, "U8"}};

const io::SafetensorsType* type_of(DType dtype) {
  const auto found = std::ranges::find(kTypes, dtype, &std::pair<DType, std::string_view>::first);
  return io::find_safetensors_type(found->second);
}

DType loadable_dtype(const io::SafetensorsEntry& entry, const std::filesystem::path& file) {
  const std::optional<DType> dtype = dtype_of(entry);
  if (dtype && is_floating(*dtype)) return *dtype;
  fail(Failure::model, "{}: tensor \"{}\": dtype: expected F64, F32, F16 or BF16, got {}", file.string(), entry.name,
       entry.dtype_name);
}

/// Takes these bytes of a mapped file out of the process's memory: the largest file is half as large again as what is
/// trained. They could be read again.
void let_go(std::span<const std::byte> bytes) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const std::uintptr_t begin = reinterpret_cast<std::uintptr_t>(bytes.data()) / page * page;
  const std::uintptr_t end = reinterpret_cast<std::uintptr_t>(bytes.data()) + bytes.size();
  ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace

std::map<std::string, std::uint32_t> write_tensors(io::FileWriter& out, const std::vector<NamedTensor>& tensors) {
  std::vector<io::TensorSource> sources;
  for (const auto& [name, value] : tensors)
    sources.push_back({.name = name,
                       .type = type_of(value.dtype()),
                       .dims = {value.shape().dims().begin(), value.shape().dims().end()},
                       .bytes = value.bytes(),
                       .read = [value](std::uint64_t first, std::span<std::byte> part) {
                         const std::size_t width = size_of(value.dtype());
                         const Tensor window =
                             value.window(static_cast<Dim>(first / width), {static_cast<Dim>(part.size() / width)});
                         window.backend().download(window, part.data());
                       }});
  return io::write_safetensors(out, std::move(sources));
}

std::optional<DType> dtype_of(const io::SafetensorsEntry& entry) {
  for (const auto& [dtype, name] : kTypes)
    if (name == entry.dtype_name) return dtype;
  return {};
}

StoredTensor stored_tensor(const io::SafetensorsEntry& entry, const std::filesystem::path& file) {
  return {.name = entry.name,
          .place = fmt::format("{}: tensor \"{}\"", file.string(), entry.name),
          .dims = entry.dims,
          .check = [&entry, file] { loadable_dtype(entry, file); },
          .load = [&entry, file](const Tensor& out) { load_entry(entry, file, out); }};
}

void load_entry(const io::SafetensorsEntry& entry, const std::filesystem::path& file, const Tensor& out) {
  const DType dtype = loadable_dtype(entry, file);
  constexpr Dim kChunk = Dim{1} << 20;
  for (Dim first = 0; first < out.elements(); first += kChunk) {
    const Shape part{std::min(kChunk, out.elements() - first)};
    const Tensor staged(part, dtype, out.backend());
    const auto read = entry.bytes.subspan(static_cast<std::size_t>(first) * size_of(dtype), staged.bytes());
    out.backend().upload(read.data(), staged);
    ops::copy_into(staged, out.window(first, part));
    let_go(read);
  }
}

}  // namespace bertrand::nn
