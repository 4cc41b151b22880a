#!/usr/bin/env bash
# The model of docs/scaling.md: seconds of one step on replicas that sum their gradients over a link.
# usage: bench/scaling_model.sh NAME=VALUE…
#   replicas=2            that sum; with one the link costs nothing
#   forward=0.1           seconds of the last micro-batch's forward pass, and of all micro-batches before it
#   backward=0.2          seconds of the last micro-batch's backward pass, in which gradients leave
#   update=0.01           seconds after the sum: norm and optimizer
#   bytes=440e6           of the gradients as they are summed
#   late=94e6             of these, at the flat tensor's beginning, that are final only when backward has ended
#   slice=25165824        bytes that leave together (distributed/reducer.h)
#   bandwidth=12.5e9      bytes a second, each way, that a replica has for the sum
#   latency=5e-6          seconds that a message takes, empty
#   messages=2            that follow each other in the sum of one block; ring: 2 (replicas − 1)
#   block=0               bytes that are exchanged at a time, for each replica; 0: a whole slice
#   overhead=0            seconds that a byte costs beside the link: reading, adding, writing
# Prints: seconds of a step, of which not hidden, and the share of the time that is computing.
set -euo pipefail
exec awk 'BEGIN {
  p["replicas"] = 2; p["forward"] = 0.1; p["backward"] = 0.2; p["update"] = 0; p["bytes"] = 440e6; p["late"] = 0
  p["slice"] = 25165824; p["bandwidth"] = 12.5e9; p["latency"] = 0; p["messages"] = 2; p["block"] = 0; p["overhead"] = 0
  for (i = 1; i < ARGC; ++i) {
    split(ARGV[i], pair, "=")
    if (!(pair[1] in p)) { print "scaling_model.sh: unknown name " pair[1] > "/dev/stderr"; exit 2 }
    p[pair[1]] = pair[2] + 0
  }
  if (p["messages"] == 0) p["messages"] = 2 * (p["replicas"] - 1)
  computed = p["forward"] + p["backward"]
  done = 0  # when the link has summed what was started
  for (left = p["bytes"]; left > 0 && p["replicas"] > 1; left -= p["slice"]) {
    size = left < p["slice"] ? left : p["slice"]
    begin = left - size
    # Gradients become final evenly over backward, from the end of the flat tensor on; a slice leaves when all of it is.
    ready = computed
    if (begin >= p["late"]) ready = p["forward"] + p["backward"] * (p["bytes"] - begin) / (p["bytes"] - p["late"])
    moved = 2 * (p["replicas"] - 1) / p["replicas"] * size
    blocks = p["block"] > 0 ? int((size + p["block"] * p["replicas"] - 1) / (p["block"] * p["replicas"])) : 1
    sum = moved / p["bandwidth"] + moved * p["overhead"] + blocks * p["messages"] * p["latency"]
    done = (done > ready ? done : ready) + sum
  }
  step = (done > computed ? done : computed) + p["update"]
  printf "%.5f %.5f %.3f\n", step, step - computed - p["update"], (computed + p["update"]) / step
}' "$@"
