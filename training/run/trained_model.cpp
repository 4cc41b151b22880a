#include "training/run/trained_model.h"

namespace bertrand::training {

PartRates rates_of(const Settings& settings, Objective& objective) { return {objective.parts(), settings.parts}; }

TrainedModel::TrainedModel(const Settings& settings, std::int64_t micro_batch_size, Objective& of,
                           const distributed::Replica& self, bool initialize)
    : objective(of),
      parameters(of.model(), self.backend(),
                 {.dtype = settings.precision,
                  .seed = settings.seed,
                  .initialize = initialize,
                  .rate = [rates = rates_of(settings, of)](const std::string& name) { return rates.of(name); }}),
      optimizer(parameters, settings.optimizer),
      stepper({objective, parameters, optimizer, self}, {.seed = settings.seed,
                                                         .micro_batch_size = micro_batch_size,
                                                         .recompute_activations = settings.recompute_activations}) {}

void share_from_first(const Training& training, const distributed::Replica& self, bool moments) {
  const auto& [objective, parameters, optimizer] = training;
  self.collective().broadcast(parameters.masters(), 0);
  parameters.round_masters();
  if (!moments) return;
  for (const Tensor& all : {optimizer.first_moments(), optimizer.second_moments()}) self.collective().broadcast(all, 0);
}

}  // namespace bertrand::training
