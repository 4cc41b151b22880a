// TensorFlow's element types (tensorflow/core/framework/types.proto), for the files about its checkpoints.
#pragma once
#include <cstdint>
#include <string_view>

namespace bertrand::io {

struct BundleType {
  int number;
  std::string_view name;  ///< as safetensors files have it
  std::uint64_t bytes;    ///< of a number; at least, of a string
  bool is_string() const { return name == "STRING"; }
};

inline constexpr BundleType kBundleTypes[] = {{1, "F32", 4},  {2, "F64", 8},   {3, "I32", 4},    {4, "U8", 1},
                                              {5, "I16", 2},  {6, "I8", 1},    {7, "STRING", 1}, {8, "C64", 8},
                                              {9, "I64", 8},  {10, "BOOL", 1}, {14, "BF16", 2},  {17, "U16", 2},
                                              {19, "F16", 2}, {22, "U32", 4},  {23, "U64", 8}};

/// nullptr if there is none.
constexpr const BundleType* find_bundle_type(int number) {
  for (const BundleType& type : kBundleTypes)
    if (type.number == number) return &type;
  return nullptr;
}
constexpr const BundleType* find_bundle_type(std::string_view name) {
  for (const BundleType& type : kBundleTypes)
    if (type.name == name) return &type;
  return nullptr;
}

}  // namespace bertrand::io
