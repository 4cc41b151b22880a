#include "nn/tensor_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "io/say.h"

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

std::optional<DType> dtype_of_name(std::string_view wanted) {
  for (const auto& [dtype, name] : kTypes)
    if (name == wanted) return dtype;
  return {};
}

DType loadable_dtype(const StoredNumbers& numbers) {
  const std::optional<DType> dtype = dtype_of_name(numbers.dtype_name);
  if (dtype && is_floating(*dtype)) return *dtype;
  fail(Failure::model, "{}: dtype: expected F64, F32, F16 or BF16, got {}", numbers.place, numbers.dtype_name);
}

/// Takes these bytes of a mapped file out of the process's memory: the largest file is half as large again as what is
/// trained. They could be read again: it is for memory alone.
void let_go(std::span<const std::byte> bytes) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const std::uintptr_t before = reinterpret_cast<std::uintptr_t>(bytes.data()) % page;  // on its first page
  ::madvise(const_cast<std::byte*>(bytes.data()) - before, before + bytes.size(), MADV_DONTNEED);
}

constexpr Dim kStaged = Dim{1} << 20;  // elements that are staged at once

/// Some rows of a matrix whose columns are the rows of `from`.
struct Columns {
  std::span<const std::byte> from;  ///< [width, height]
  Dim height, width;                ///< of the matrix
  Dim first, count;                 ///< rows of it
};

/// Tile by tile, through a buffer: reads and writes are of whole cache lines, whatever the sizes of the matrix are.
template <class T>
void gather(const Columns& columns, std::byte* to) {
  constexpr Dim kTile = 64;
  T tile[kTile][kTile];
  const auto at = [](Dim element) { return static_cast<std::size_t>(element) * sizeof(T); };
  for (Dim r0 = 0; r0 < columns.count; r0 += kTile)
    for (Dim c0 = 0; c0 < columns.width; c0 += kTile) {
      const Dim rows = std::min(kTile, columns.count - r0), width = std::min(kTile, columns.width - c0);
      for (Dim c = 0; c < width; ++c) {
        T column[kTile];
        std::memcpy(column, columns.from.data() + at((c0 + c) * columns.height + columns.first + r0), at(rows));
        for (Dim r = 0; r < rows; ++r) tile[r][c] = column[r];
      }
      for (Dim r = 0; r < rows; ++r) std::memcpy(to + at((r0 + r) * columns.width + c0), tile[r], at(width));
    }
}

void gather(const Columns& columns, DType dtype, std::byte* to) {
  switch (size_of(dtype)) {
    case 2: return gather<std::uint16_t>(columns, to);
    case 4: return gather<std::uint32_t>(columns, to);
    default: return gather<std::uint64_t>(columns, to);
  }
}

/// Numbers of the host, converted to the type of `out`.
void upload(const std::byte* numbers, DType dtype, const Tensor& out) {
  if (dtype == out.dtype()) {  // for speed alone: nothing to convert
    out.backend().upload(numbers, out);
    return out.count_write();
  }
  const Tensor staged(out.shape(), dtype, out.backend());
  out.backend().upload(numbers, staged);
  ops::copy_into(staged, out);
}

void load_transposed(std::span<const std::byte> bytes, DType dtype, const Tensor& out) {
  const Dim height = out.shape()[0], width = out.shape()[1];
  std::vector<std::byte> rows;
  const Dim most = std::max<Dim>(1, kStaged / std::max<Dim>(1, width));
  for (Dim first = 0; first < height; first += most) {
    const Columns columns{bytes, height, width, first, std::min(most, height - first)};
    rows.resize(static_cast<std::size_t>(columns.count * width) * size_of(dtype));
    gather(columns, dtype, rows.data());
    upload(rows.data(), dtype, out.rows(first, first + columns.count));
  }
  let_go(bytes);  // for memory alone
}

}  // namespace

io::TensorSource tensor_source(const NamedTensor& tensor) {
  const Tensor value = tensor.value;
  return {.name = tensor.name,
          .type = type_of(value.dtype()),
          .dims = {value.shape().dims().begin(), value.shape().dims().end()},
          .bytes = value.bytes(),
          .read = [value](std::uint64_t first, std::span<std::byte> part) {
            const std::size_t width = size_of(value.dtype());
            const Tensor window =
                value.window(static_cast<Dim>(first / width), {static_cast<Dim>(part.size() / width)});
            window.backend().download(window, part.data());
          }};
}

io::TensorSource transposed_source(const NamedTensor& matrix) {
  const Tensor value = matrix.value;
  io::TensorSource source = tensor_source(matrix);
  std::swap(source.dims.at(0), source.dims.at(1));
  source.read = [value, whole = std::make_shared<std::vector<std::byte>>()](std::uint64_t first,
                                                                            std::span<std::byte> part) {
    if (first == 0) {
      std::vector<std::byte> rows(value.bytes());
      value.backend().download(value, rows.data());
      whole->resize(rows.size());
      const Dim height = value.shape()[1], width = value.shape()[0];
      gather({.from = rows, .height = height, .width = width, .first = 0, .count = height}, value.dtype(),
             whole->data());
    }
    std::memcpy(part.data(), whole->data() + first, part.size());
    if (first + part.size() == whole->size()) std::exchange(*whole, std::vector<std::byte>());  // = {} keeps the memory
  };
  return source;
}

std::map<std::string, std::uint32_t> write_tensors(io::FileWriter& out, const std::vector<NamedTensor>& tensors) {
  std::vector<io::TensorSource> sources;
  for (const NamedTensor& tensor : tensors) sources.push_back(tensor_source(tensor));
  return io::write_safetensors(out, std::move(sources));
}

std::optional<DType> dtype_of(const io::SafetensorsEntry& entry) { return dtype_of_name(entry.dtype_name); }

StoredNumbers numbers_of(const io::SafetensorsEntry& entry, const std::filesystem::path& file) {
  return {.name = entry.name,
          .place = fmt::format("{}: tensor \"{}\"", file.string(), io::one_line(entry.name)),
          .dtype_name = entry.dtype_name,
          .dims = entry.dims,
          .bytes = [bytes = entry.bytes] { return bytes; }};
}

StoredTensor stored_tensor(StoredNumbers numbers) {
  const auto shared = std::make_shared<const StoredNumbers>(std::move(numbers));
  return {.name = shared->name,
          .place = shared->place,
          .dims = shared->dims,
          .check = [shared] { loadable_dtype(*shared); },
          .load = [shared](const Tensor& out) { load_numbers(*shared, out); }};
}

void load_numbers(const StoredNumbers& numbers, const Tensor& out) {
  const DType dtype = loadable_dtype(numbers);
  const std::span<const std::byte> bytes = numbers.bytes();
  if (numbers.transposed) return load_transposed(bytes, dtype, out);
  for (Dim first = 0; first < out.elements(); first += kStaged) {
    const Shape part{std::min(kStaged, out.elements() - first)};
    const auto read = bytes.subspan(static_cast<std::size_t>(first) * size_of(dtype),
                                    static_cast<std::size_t>(part.elements()) * size_of(dtype));
    upload(read.data(), dtype, out.window(first, part));
    let_go(read);  // for memory alone
  }
}

void load_entry(const io::SafetensorsEntry& entry, const std::filesystem::path& file, const Tensor& out) {
  load_numbers(numbers_of(entry, file), out);
}

}  // namespace bertrand::nn
