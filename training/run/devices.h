// From --device, --replicas and --threads to replicas.
#pragma once
#include <memory>
#include <vector>

#include "distributed/replica_group.h"
#include "training/run/settings.h"

namespace bertrand::training {

/// One replica on each device named, or `replicas` on the only one, the cores shared out among them. `processes` are
/// those of the run, or null if this is the only one. Throws Error(Failure::usage) for names that are none, a device
/// named twice, devices of two kinds, and devices that this build does not have.
distributed::ReplicaGroup open_replicas(const Settings& settings, distributed::Collective* processes);
/// How many that are.
int replicas_of_process(const Settings& settings);

}  // namespace bertrand::training
