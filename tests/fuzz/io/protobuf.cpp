// The wire format of protocol buffers: every field of every message, and of the bytes that may be messages too.
#include "io/protobuf.h"

#include "fuzz/fuzz.h"

using namespace bertrand;

static std::uint64_t walk(io::ProtoReader reader, int depth) {
  using io::WireType;
  std::uint64_t sum = 0;
  while (reader.next()) {
    const int field = reader.field();
    fuzz::require(field > 0, "fields from 1");
    // What a field is read as follows from its number, so that each kind of value is met in each way.
    if (field % 4 == 1 && reader.has_varints(field)) reader.each_varint([&](std::uint64_t value) { sum += value; });
    else if (field % 4 == 2 && reader.has_floats(field)) reader.each_float([&](float value) { sum += value == value; });
    else if (field % 4 == 3 && reader.is(field, WireType::bytes) && depth < 32)
      sum += walk(reader.message(), depth + 1);
    else if (field % 8 == 4 && reader.is(field, WireType::bytes)) sum += reader.bytes().size();
    else if (reader.is(field, WireType::fixed64) && field % 8 == 0) sum += reader.fixed<std::uint64_t>();
    else if (reader.is(field, WireType::varint) && field % 8 == 4) sum += reader.varint();
  }
  return sum;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::read_or_refuse([&] { walk({fuzz::text_of(data, size), "p", Failure::input}, 0); });
  return 0;
}
