// Tensors in safetensors files: the bytes that are written, and what is read back.
#include "nn/tensor_file.h"

#include <doctest/doctest.h>

#include <malloc.h>

#include <cstring>

#include "io/crc32c.h"
#include "support/program.h"
#include "support/refusal.h"
#include "tensor/backends.h"

using namespace bertrand;
using namespace bertrand::io;
using support::read_text;
using support::write_text;

namespace {

std::string file_of(const std::string& header, const std::string& data) {
  const std::uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header + data;
}

const std::string kMatrix = R"({"test":{"dtype":"I32","shape":[2,2],"data_offsets":[0,16]}})";

std::string ints(std::initializer_list<std::int32_t> values) {
  return {reinterpret_cast<const char*>(values.begin()), 4 * values.size()};
}

template <class T>
Tensor tensor_of(Backend& backend, const Shape& shape, const std::vector<T>& values) {
  Tensor tensor(shape, dtype_of<T>(), backend);
  std::copy(values.begin(), values.end(), tensor.span<T>().begin());
  return tensor;
}

std::string written(const std::vector<nn::NamedTensor>& tensors, std::map<std::string, std::uint32_t>* crcs = nullptr) {
  const support::TemporaryDirectory directory;
  FileWriter out(Files::system(), directory / "f");
  const auto checksums = nn::write_tensors(out, tensors);
  if (crcs) *crcs = checksums;
  out.finish();
  return read_text(directory / "f");
}

}  // namespace

TEST_CASE("a written file has the bytes that the reference writes") {
  const auto backend = open_cpu({.threads = 1});
  const auto zeros = [&](const Shape& shape, DType dtype) {
    const Tensor t(shape, dtype, *backend);
    std::memset(t.data(), 0, t.bytes());
    return t;
  };
  // The expected text is what the Python package safetensors 0.8.0 writes for the same tensors.
  std::string header =
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"I64","shape":[2],"data_offsets":[0,16]},)"
      R"("c":{"dtype":"F64","shape":[2],"data_offsets":[16,32]},"a":{"dtype":"F32","shape":[3],"data_offsets":[32,44]},)"
      R"("s":{"dtype":"F32","shape":[],"data_offsets":[44,48]},)"
      "\"\xc3\xa9\\\"\\\\\\n\\u0001/\x7f\":"
      R"({"dtype":"F32","shape":[2,0],"data_offsets":[48,48]},"i":{"dtype":"I32","shape":[1],"data_offsets":[48,52]},)"
      R"("h":{"dtype":"F16","shape":[3],"data_offsets":[52,58]},"z":{"dtype":"U8","shape":[3],"data_offsets":[58,61]}})";
  header.resize(488, ' ');
  const std::vector<nn::NamedTensor> tensors = {{"z", tensor_of<std::uint8_t>(*backend, {3}, {0, 1, 2})},
                                                {"h", zeros({3}, DType::f16)},
                                                {"s", tensor_of<float>(*backend, {}, {3})},
                                                {"\xc3\xa9\"\\\n\x01/\x7f", zeros({2, 0}, DType::f32)},
                                                {"b", zeros({2}, DType::i64)},
                                                {"a", tensor_of<float>(*backend, {3}, {0, 1, 2})},
                                                {"i", zeros({1}, DType::i32)},
                                                {"c", tensor_of<double>(*backend, {2}, {0, 1})}};
  const auto raw = [](const auto& values) { return std::string(reinterpret_cast<const char*>(values), sizeof values); };
  const double c[] = {0, 1};
  const float a[] = {0, 1, 2}, s[] = {3};
  const std::string data =
      std::string(16, '\0') + raw(c) + raw(a) + raw(s) + std::string(4 + 6, '\0') + std::string("\0\1\2", 3);
  std::map<std::string, std::uint32_t> checksums;
  CHECK(written(tensors, &checksums) == file_of(header, data));
  CHECK(checksums.size() == 8);
  CHECK(checksums.at("a") == crc32c(raw(a)));
  CHECK(checksums.at("z") == crc32c(std::string_view("\0\1\2", 3)));

  header = R"({"__metadata__":{"format":"pt"},"b":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]},)"
           R"("a":{"dtype":"F16","shape":[2],"data_offsets":[4,8]}})";
  header.resize(144, ' ');
  CHECK(written({{"b", zeros({2}, DType::bf16)}, {"a", zeros({2}, DType::f16)}}) ==
        file_of(header, std::string(8, '\0')));
}

TEST_CASE("what is written is read back if it is larger than one chunk and of any floating type") {
  const auto backend = open_cpu({.threads = 1});
  std::vector<float> values(1'100'000);  // of 2^20 each
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 256) - 100.0f;
  const Tensor original = tensor_of(*backend, {1100, 1000}, values);
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    const Tensor stored(original.shape(), dtype, *backend);
    ops::copy_into(original, stored);
    const support::TemporaryDirectory directory;
    FileWriter out(Files::system(), directory / "f");
    nn::write_tensors(out, {{"x", stored}, {"y", tensor_of<float>(*backend, {1}, {7})}});
    out.finish();
    const SafetensorsFile file(directory / "f");
    const Tensor loaded(original.shape(), DType::f32, *backend);
    nn::load_entry(*file.find("x"), file.path(), loaded);
    CHECK(std::ranges::equal(loaded.span<float>(), original.span<float>()));
  }
}

TEST_CASE("a tensor of whole numbers is no weight") {
  const auto backend = open_cpu({.threads = 1});
  const support::TemporaryDirectory directory;
  write_text(directory / "f", file_of(kMatrix, ints({1, 2, 3, 4})));
  const SafetensorsFile file(directory / "f");
  CHECK(nn::dtype_of(*file.find("test")) == DType::i32);
  const Tensor out({2, 2}, DType::f32, *backend);
  CHECK_THROWS_WITH_AS(
      nn::load_entry(*file.find("test"), file.path(), out),
      ((directory / "f").string() + ": tensor \"test\": dtype: expected F64, F32, F16 or BF16, got I32").c_str(),
      Error);
}

TEST_CASE("a matrix whose file holds its columns is loaded whole, however large it is and whatever its sizes") {
  const auto backend = open_cpu({.threads = 1});
  const support::TemporaryDirectory directory;
  for (const auto& [rows, columns] : {std::pair<Dim, Dim>{1500, 701}, {3, 65}, {64, 1}}) {  // the first is two pieces
    CAPTURE(rows);
    const auto number = [](Dim row, Dim column) { return static_cast<float>((7 * row + 3 * column) % 251); };
    std::vector<float> stored;
    for (Dim column = 0; column < columns; ++column)
      for (Dim row = 0; row < rows; ++row) stored.push_back(number(row, column));
    write_text(directory / "columns", {reinterpret_cast<const char*>(stored.data()), stored.size() * sizeof(float)});
    const MappedFile file(directory / "columns");
    const nn::StoredNumbers numbers{.name = "w",
                                    .place = "w",
                                    .dtype_name = "F32",
                                    .dims = {rows, columns},
                                    .bytes = [&] { return file.bytes(); },
                                    .transposed = true};
    for (const DType dtype : {DType::f32, DType::bf16}) {
      const Tensor out({rows, columns}, dtype, *backend);
      nn::load_numbers(numbers, out);
      const std::vector<float> loaded = ops::to_host<float>(out);
      int wrong = 0;
      for (Dim row = 0; row < rows; ++row)
        for (Dim column = 0; column < columns; ++column)
          wrong += loaded[static_cast<std::size_t>(row * columns + column)] != number(row, column);
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("a transposed source gives the columns in pieces and keeps no memory after the last") {
  const auto backend = open_cpu({.threads = 1});
  constexpr std::size_t kRows = 700, kColumns = 1500;  // five pieces of 1 MiB
  std::vector<float> values(kRows * kColumns), columns;
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  for (std::size_t column = 0; column < kColumns; ++column)
    for (std::size_t row = 0; row < kRows; ++row) columns.push_back(values[row * kColumns + column]);
  const io::TensorSource source =
      nn::transposed_source({"w", tensor_of(*backend, {Dim{kRows}, Dim{kColumns}}, values)});
  CHECK(source.dims == std::vector<std::int64_t>{kColumns, kRows});
  const std::string expected(reinterpret_cast<const char*>(columns.data()), columns.size() * sizeof(float));
  std::string got;
  got.reserve(expected.size());
  const auto in_use = [] { return mallinfo2().uordblks + mallinfo2().hblkhd; };
  const std::size_t before = in_use();
  read_in_pieces(source, [&](std::span<const std::byte> piece) {
    got.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  });
  CHECK(in_use() < before + expected.size() / 2);
  CHECK(got == expected);
}
