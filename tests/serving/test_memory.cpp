// What a batch is reckoned to take, which serve says when it begins.
#include <doctest/doctest.h>

#include "serving/asked.h"

using namespace bertrand;

TEST_CASE("the memory of a batch grows with its tokens, and with the words of each mask, and has no weights in it") {
  const support::TemporaryDirectory directory;
  support::write_small_classifier(directory / "classes");
  support::write_small_head<bert::ForPretraining>(directory / "masks", {.architecture = "BertForPreTraining"});
  const serving::ModelPointer classes = support::open_served(directory / "classes", "classes"),
                              masks = support::open_served(directory / "masks", "masks");
  CHECK(classes->batch_bytes(1) < std::filesystem::file_size(directory / "classes/model.safetensors"));
  constexpr std::size_t kTokens = 1000, kHidden = 16, kWords = 15;
  CHECK(classes->batch_bytes(2 * kTokens) - classes->batch_bytes(kTokens) > kTokens * kHidden * sizeof(float));
  // Each token may be [MASK], whose outputs are on the device's side and on this one.
  CHECK(masks->batch_bytes(kTokens) > classes->batch_bytes(kTokens) + kTokens * kWords * sizeof(float));
}
