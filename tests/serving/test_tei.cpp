// text-embeddings-inference's errors.
#include "serving/tei.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

using namespace bertrand;

TEST_CASE("the kind of an error is the one that text-embeddings-inference gives to its status") {
  for (const auto& [status, kind] : {std::pair(400, "Validation"),
                                     {405, "Validation"},
                                     {408, "Validation"},
                                     {413, "Validation"},
                                     {415, "Validation"},
                                     {422, "Validation"},
                                     {424, "Backend"},
                                     {429, "Overloaded"},
                                     {500, "Backend"},
                                     {503, "Unhealthy"},
                                     {504, "Unhealthy"}})
    CHECK(nlohmann::json::parse(serving::tei::error_text(status, "x")).at("error_type") == kind);
}
