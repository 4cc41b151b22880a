#!/usr/bin/env bash
# The model of docs/scaling.md: seconds of one step on replicas that sum their gradients over a link.
# usage: bench/scaling_model.sh NAME=VALUE…, by default
#   replicas=2            that sum; with one the link costs nothing
#   forward=0.1           seconds of the last micro-batch's forward pass, and of all micro-batches before it
#   backward=0.2          seconds of the last micro-batch's backward pass, in which gradients leave
#   update=0              seconds after the sum: norm and optimizer
#   bytes=440e6           gradients, in the type in which they are summed
#   late=0                bytes at the beginning of the flat tensor that are final only when backward has ended
#   slice=25165824        bytes of a bucket: gradients that leave together (distributed/gradient_sum.h)
#   bandwidth=12.5e9      bytes a second in each direction that a replica has for the sum
#   processor=0           seconds of the computing processor to move a byte: reading, adding, copying
#   latency=0             seconds of an empty message
#   messages=2            that follow each other in one sum; ring: 2 (replicas − 1)
#   calls=0               small sums of a step that nothing hides: counts and losses
# Prints the seconds of a step, those of them that are not hidden, and the share of the time that is computing.
set -euo pipefail
exec awk 'BEGIN {
  p["replicas"] = 2; p["forward"] = 0.1; p["backward"] = 0.2; p["update"] = 0; p["bytes"] = 440e6; p["late"] = 0
  p["slice"] = 25165824; p["bandwidth"] = 12.5e9; p["processor"] = 0; p["latency"] = 0; p["messages"] = 2; p["calls"] = 0
  for (i = 1; i < ARGC; ++i) {
    split(ARGV[i], pair, "=")
    if (!(pair[1] in p)) { print "scaling_model.sh: unknown name " pair[1] > "/dev/stderr"; exit 2 }
    p[pair[1]] = pair[2] + 0
  }
  if (p["messages"] == 0) p["messages"] = 2 * (p["replicas"] - 1)
  empty = p["replicas"] > 1 ? p["messages"] * p["latency"] : 0
  byte = 1 / p["bandwidth"] > p["processor"] ? 1 / p["bandwidth"] : p["processor"]
  own = p["forward"] + p["backward"] + p["update"]
  computed = p["forward"] + p["backward"]  # when backward ends
  taken = 0                                # from the processor that computes, until then
  done = 0                                 # when the link has summed what was started
  for (left = p["bytes"]; left > 0 && p["replicas"] > 1; left -= p["slice"]) {
    size = left < p["slice"] ? left : p["slice"]
    start = left - size
    # Gradients become final evenly over backward, from the end of the flat tensor on; a slice leaves when all of it is.
    ready = computed + taken
    if (start >= p["late"]) ready = p["forward"] + p["backward"] * (p["bytes"] - start) / (p["bytes"] - p["late"]) + taken
    moved = 2 * (p["replicas"] - 1) / p["replicas"] * size
    sum = empty + moved * byte
    begin = done > ready ? done : ready
    done = begin + sum
    beside = (computed + taken - begin) / sum  # the share of the sum that is made while this replica computes
    if (beside > 0) taken += moved * p["processor"] * (beside < 1 ? beside : 1)
  }
  computed += taken
  step = (done > computed ? done : computed) + p["update"] + p["calls"] * empty
  printf "%.5f %.5f %.3f\n", step, step - own, own / step
}' "$@"
