// Safetensors files: what is read, and what is refused with which line.
#include "io/safetensors.h"

#include <doctest/doctest.h>

#include <cstring>
#include <random>

#include "io/crc32c.h"
#include "support/program.h"
#include "support/refusal.h"

using namespace bertrand;
using namespace bertrand::io;
using support::read_text;
using support::write_text;

namespace {

std::string file_of(const std::string& header, const std::string& data) {
  const std::uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header + data;
}

/// "" or what is said against a file of these bytes, its name cut off.
std::string refusal(const std::string& bytes) {
  static const support::TemporaryDirectory directory;
  const std::filesystem::path file = directory / "f";
  write_text(file, bytes);
  try {
    const SafetensorsFile opened(file);
    // What is accepted must be safe to read: sum all bytes.
    std::size_t total = 0;
    for (const SafetensorsEntry& entry : opened.entries())
      for (const std::byte b : entry.bytes) total += static_cast<std::size_t>(b);
    CHECK(total < bytes.size() * 256);
  } catch (const Error& error) {
    CHECK(error.failure() == Failure::model);
    const std::string line = error.what();
    CHECK(line.starts_with(file.string()));
    CHECK(line.find('\n') == std::string::npos);
    return line.substr(file.string().size());
  }
  return "";
}
std::string header_refusal(const std::string& header, const std::string& data = std::string(16, 'x')) {
  return refusal(file_of(header, data));
}

const std::string kMatrix = R"({"test":{"dtype":"I32","shape":[2,2],"data_offsets":[0,16]}})";

std::string ints(std::initializer_list<std::int32_t> values) {
  return {reinterpret_cast<const char*>(values.begin()), 4 * values.size()};
}

}  // namespace

TEST_CASE("a file of Hugging Face's own tests is read byte by byte") {
  const support::TemporaryDirectory directory;
  write_text(directory / "f", file_of(kMatrix, ints({1, 2, 3, 4})));
  const SafetensorsFile file(directory / "f");
  CHECK(file.path() == directory / "f");
  REQUIRE(file.entries().size() == 1);
  const SafetensorsEntry& entry = *file.find("test");
  CHECK(entry.dtype_name == "I32");
  CHECK(entry.dims == std::vector<std::int64_t>{2, 2});
  CHECK(std::memcmp(entry.bytes.data(), ints({1, 2, 3, 4}).data(), 16) == 0);
  CHECK(file.find("tes") == nullptr);
}

TEST_CASE("metadata and spaces after the header are accepted") {
  std::string header =
      R"({"__metadata__":{"framework":"pt"},"test1":{"dtype":"I32","shape":[2,2],"data_offsets":[0,16]}})";
  header.resize(102, ' ');
  CHECK(header_refusal(header) == "");
  CHECK(refusal(file_of("{}", "")) == "");
  CHECK(header_refusal(R"({"s":{"dtype":"F64","shape":[],"data_offsets":[0,8]},)"
                       R"("z":{"dtype":"F32","shape":[0,3],"data_offsets":[8,8]},)"
                       R"("b":{"dtype":"F4","shape":[4,4],"data_offsets":[8,16]}})") == "");
}

TEST_CASE("a directory holds no tensors") {
  CHECK(support::refusal(Failure::model, [&] { SafetensorsFile("/tmp"); }) ==
        "/tmp: tensors: expected a file, got a directory");
}

TEST_CASE("a file that is cut, over-long or no safetensors file says where") {
  CHECK(refusal("") == "@0: header length: expected 8 bytes, got a file of 0");
  CHECK(refusal("version https://git-lfs.github.com/spec/v1\noid sha256:abc\nsize 90868376\n") ==
        ": expected tensors, got a Git LFS pointer to them; hint: git lfs pull");
  CHECK(refusal(std::string(8, '\0')) == "@8: header: expected it to begin with \"{\"");
  const std::uint64_t longest = 100'000'000;
  CHECK(refusal(std::string(reinterpret_cast<const char*>(&longest), 8) + "{}") ==
        "@0: header length: expected at most 2, which is what follows, got 100000000; hint: is it cut short?");
  CHECK(refusal("1234567") == "@0: header length: expected 8 bytes, got a file of 7");
  CHECK(refusal("PK\3\4 pickled data") ==
        "@0: header length: expected at most 100000000, got 7163379965118073680; hint: is it a safetensors file?");
  CHECK(refusal(file_of(kMatrix, "").substr(0, 30)) ==
        "@0: header length: expected at most 22, which is what follows, got 60; hint: is it cut short?");
  CHECK(header_refusal(kMatrix, "short") ==
        ": tensor \"test\": data_offsets: expected to end by 5, where the file does, got 16; hint: is it cut short?");
  CHECK(header_refusal(kMatrix, std::string(17, 'x')) ==
        "@84: expected the end of the file, as the last tensor ends here, got 1 more bytes");
  CHECK(header_refusal("{}") == "@10: expected the end of the file, as the last tensor ends here, got 16 more bytes");
}

TEST_CASE("a header that is no JSON object says at which byte") {
  CHECK(header_refusal("") == "@8: header: expected it to begin with \"{\"");
  CHECK(header_refusal(" {}") == "@8: header: expected it to begin with \"{\"");
  CHECK(header_refusal("{\"a\":}") == "@13: header: expected JSON, got a syntax error or invalid UTF-8");
  CHECK(header_refusal("{} x") == "@11: header: expected JSON, got a syntax error or invalid UTF-8");
  CHECK(header_refusal("{\"\xc3\x28\":1}") == "@11: header: expected JSON, got a syntax error or invalid UTF-8");
  CHECK(header_refusal("{\"a\"").find("header: expected JSON") != std::string::npos);
  CHECK(header_refusal(std::string("{}\0\0", 4)) == "@10: header: expected JSON, got a NUL");
}

TEST_CASE("a header of another form names the tensor, what was expected and what was found") {
  const auto tensor = [](const std::string& fields) { return header_refusal(R"({"w":{)" + fields + "}}"); };
  const std::string dtype = R"("dtype":"F32")", shape = R"("shape":[2,2])", offsets = R"("data_offsets":[0,16])";
  CHECK(tensor(dtype + "," + shape + "," + offsets) == "");
  CHECK(header_refusal(R"({"w":3})") == ": tensor \"w\": expected an object, got 3");
  CHECK(header_refusal(R"({"w":[]})") == ": tensor \"w\": expected an object, got a list");
  CHECK(tensor(shape + "," + offsets) == ": tensor \"w\": expected a field \"dtype\", got none");
  CHECK(tensor(dtype + "," + offsets) == ": tensor \"w\": expected a field \"shape\", got none");
  CHECK(tensor(dtype + "," + shape) == ": tensor \"w\": expected a field \"data_offsets\", got none");
  CHECK(tensor(dtype + "," + dtype) == ": tensor \"w\": the key \"dtype\" comes twice");
  CHECK(tensor(R"("size":1)") == ": tensor \"w\": expected the fields dtype, shape and data_offsets, got \"size\"");
  CHECK(tensor(R"("dtype":"F33")") == ": tensor \"w\": dtype: expected a known type such as F32, got \"F33\"");
  CHECK(tensor(R"("dtype":32)") == ": tensor \"w\": dtype: expected a string, got 32");
  CHECK(tensor(R"("dtype":["F32"])") == ": tensor \"w\": dtype: expected a string, got a list");
  CHECK(tensor(R"("shape":"2")") == ": tensor \"w\": shape: expected a list, got \"2\"");
  CHECK(tensor(R"("shape":[-1])") == ": tensor \"w\": shape: expected whole numbers, got -1");
  CHECK(tensor(R"("shape":[2.5])") == ": tensor \"w\": shape: expected whole numbers, got 2.5");
  CHECK(tensor(R"("shape":[[2]])") == ": tensor \"w\": shape: expected whole numbers, got a list");
  CHECK(tensor(R"("shape":[null])") == ": tensor \"w\": shape: expected whole numbers, got null");
  CHECK(tensor(R"("data_offsets":[0])") == ": tensor \"w\": data_offsets: expected 2 numbers, got 1");
  CHECK(tensor(R"("data_offsets":[0,1,2])") == ": tensor \"w\": data_offsets: expected 2 numbers, got more");
  CHECK(tensor(R"("data_offsets":[0,true])") == ": tensor \"w\": data_offsets: expected whole numbers, got true");
  CHECK(tensor(R"("data_offsets":{})") == ": tensor \"w\": data_offsets: expected a list, got an object");
  CHECK(header_refusal(R"({"__metadata__":3})") == ": __metadata__: expected an object, got 3");
  CHECK(header_refusal(R"({"__metadata__":{"a":3}})") == ": __metadata__: expected strings, got 3");
  CHECK(header_refusal(R"({"__metadata__":{"a":"","a":""}})") == ": __metadata__: the key \"a\" comes twice");
  CHECK(header_refusal(R"({"w":{},)") == ": tensor \"w\": expected a field \"dtype\", got none");
  CHECK(header_refusal(R"({"__metadata__":{},"__metadata__":{}})") ==
        "@8: header: the key \"__metadata__\" comes twice");
}

TEST_CASE("sizes that overflow or disagree with the offsets are refused before anything is read") {
  const auto tensor = [](const std::string& dtype, const std::string& shape, const std::string& offsets) {
    return header_refusal(R"({"w":{"dtype":")" + dtype + R"(","shape":[)" + shape + R"(],"data_offsets":[)" + offsets +
                          "]}}");
  };
  CHECK(tensor("F32", "2,2", "0,12") == ": tensor \"w\": data_offsets: expected [0,16] for [2,2] of F32, got [0,12]");
  CHECK(tensor("F32", "2,2", "16,0") == ": tensor \"w\": data_offsets: expected [16,32] for [2,2] of F32, got [16,0]");
  CHECK(tensor("F32", "281474976710656,281474976710656", "0,16") ==
        ": tensor \"w\": shape: expected fewer than 2^64 bits, got [281474976710656,281474976710656] of F32");
  CHECK(tensor("F32", "18446744073709551615", "0,16") ==
        ": tensor \"w\": shape: expected dimensions of at most 281474976710656, got 18446744073709551615");
  CHECK(tensor("F32", "99999999999999999999", "0,16") ==
        ": tensor \"w\": shape: expected whole numbers, got 99999999999999999999");
  CHECK(tensor("F4", "3", "0,1") == ": tensor \"w\": shape: expected whole bytes, got [3] of F4");
  CHECK(
      tensor("F32", "2,2", "1,17") ==
      ": tensor \"w\": data_offsets: expected to begin at 0, got 1; hint: tensors may neither overlap nor leave holes");
  CHECK(tensor("F32", "2,2", "18446744073709551600,18446744073709551615").find("data_offsets: expected [") !=
        std::string::npos);
  std::string many;
  for (int i = 0; i < 65; ++i) many += i ? ",1" : "1";
  CHECK(tensor("F32", many, "0,4") == ": tensor \"w\": shape: expected at most 64 dimensions, got more");
}

TEST_CASE("tensors may not overlap, leave holes, share a name or have a monstrous one") {
  const auto two = [](const std::string& first, const std::string& second, const std::string& name = "b") {
    return header_refusal(R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[)" + first + R"(]},")" + name +
                          R"(":{"dtype":"U8","shape":[8],"data_offsets":[)" + second + "]}}");
  };
  const std::string hint = "; hint: tensors may neither overlap nor leave holes";
  CHECK(two("0,8", "8,16") == "");
  CHECK(two("8,16", "0,8") == "");
  CHECK(two("0,8", "7,15") == ": tensor \"b\": data_offsets: expected to begin at 8, got 7" + hint);
  CHECK(two("0,8", "9,17") == ": tensor \"b\": data_offsets: expected to begin at 8, got 9" + hint);
  CHECK(two("0,8", "8,16", "a") == "@8: header: the key \"a\" comes twice");
  CHECK(two("0,8", "8,16", "\\u0000") ==
        "@8: header: a tensor's name: expected at most 1024 bytes and no NUL, got 1 bytes");
  CHECK(two("0,8", "8,16", std::string(1024, 'n')) == "");
  CHECK(two("0,8", "8,16", std::string(1025, 'n')) ==
        "@8: header: a tensor's name: expected at most 1024 bytes and no NUL, got 1025 bytes");
}

TEST_CASE("hostile headers cost neither much time nor the stack") {
  CHECK(header_refusal(std::string(1 << 20, '{')).find("header: expected JSON") != std::string::npos);
  std::string nested = R"({"w":{"shape":)" + std::string(1 << 20, '[');
  CHECK(header_refusal(nested) == ": tensor \"w\": shape: expected whole numbers, got a list");
  std::string many = "{";
  for (int i = 0; i <= 100'000; ++i)
    many += fmt::format("{}\"{}\":{{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}", i ? "," : "", i);
  CHECK(refusal(file_of(many + "}", "")) == "@8: header: expected at most 100000 tensors, got more");
}

TEST_CASE("a small file cut anywhere, or with any byte changed, is refused or read within its bounds") {
  const std::string good =
      file_of(R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
              R"("b":{"dtype":"I8","shape":[3],"data_offsets":[8,11]}})",
              "12345678abc");
  REQUIRE(refusal(good) == "");
  for (std::size_t size = 0; size < good.size(); ++size) {
    CAPTURE(size);
    CHECK(refusal(good.substr(0, size)) != "");
  }
  for (std::size_t i = 0; i < good.size(); ++i)
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ (1 << bit));
      refusal(bad);  // itself checks that whatever is accepted can be read, and whatever is not is one line
    }
  std::mt19937 random(1);
  for (int i = 0; i < 500; ++i) {
    std::string bad = good;
    for (int k = 0; k < 3; ++k) bad[random() % bad.size()] = "{}[]\",:0123456789-e. \0\xff"[random() % 23];
    refusal(bad);
  }
}

TEST_CASE("metadata of more keys than anybody writes is refused") {
  const auto header = [](int keys) {
    std::string text = R"({"__metadata__":{)";
    for (int i = 0; i < keys; ++i) text += fmt::format("{}\"k{}\":\"\"", i ? "," : "", i);
    return text + "}}";
  };
  CHECK(header_refusal(header(10'000)).find("__metadata__") == std::string::npos);
  CHECK(header_refusal(header(10'001)) ==
        ": __metadata__: expected at most 10000 keys of at most 1024 bytes, got more");
}

TEST_CASE("a key of metadata may have 1024 bytes and no more") {
  const auto header = [](std::size_t size) { return R"({"__metadata__":{")" + std::string(size, 'k') + R"(":""}})"; };
  CHECK(refusal(file_of(header(1024), "")).empty());
  CHECK_FALSE(refusal(file_of(header(1025), "")).empty());
}

TEST_CASE("the tensors of a file that is written begin at a multiple of eight bytes, however long its header is") {
  const support::TemporaryDirectory directory;
  const auto source = [](const std::string& name, const char* type, const std::string& bytes) {
    return TensorSource{.name = name,
                        .type = find_safetensors_type(type),
                        .dims = {1},
                        .bytes = bytes.size(),
                        .read = [bytes](std::uint64_t first, std::span<std::byte> part) {
                          std::memcpy(part.data(), bytes.data() + first, part.size());
                        }};
  };
  for (std::size_t size = 1; size <= 8; ++size) {
    const std::string name(size, 'n');
    FileWriter out(Files::system(), directory / "f");
    const auto checksums = write_safetensors(out, {source("step", "I8", "s"), source(name, "F64", "12345678")});
    out.finish();
    CHECK(checksums == std::map<std::string, std::uint32_t>{{name, crc32c("12345678")}, {"step", crc32c("s")}});
    const std::string bytes = read_text(directory / "f");
    const SafetensorsFile file(directory / "f");
    CHECK((bytes.size() - 8 - 1) % 8 == 0);
    CHECK(std::memcmp(file.find(name)->bytes.data(), "12345678", 8) == 0);
    CHECK(file.find("step")->bytes[0] == std::byte{'s'});
  }
}
