#!/usr/bin/env bash
# The model of docs/scaling.md for inputs: what pre-training reads and holds on each host, from constants that were
# measured on one.
# usage: bench/input_model.sh NAME=VALUE…, by default the 16 GB of text of BERT on 64 hosts
#   hosts=64 processes=1      hosts, and processes on each
#   cores=16                  of a host, which all its processes share
#   text=16e9                 bytes of text
#   batch=256 length=128 steps=1000000   of the run, all hosts together
#   step=0.05                 seconds of a step without reading
#   disk=1e9                  bytes a second that one host reads of its own disk, or of its share of a common one
# measured, see docs/scaling.md; bytes of the files for each byte of text, and seconds of one core:
#   ids=0.430                 .ids: two bytes a token
#   places=0.0657             .sentences and .documents, eight bytes each
#   prepare=13.3e-9           prepare corpus, for each byte of text
#   tokenise=13.3e-9          the same where pretrain tokenises the text itself, into memory
#   sentences=0.00783         of text, for each byte of it
#   count=2.1e-8              counting the pairs of an epoch, for each sentence
#   draw=1.5e-4               all that an example of 128 tokens costs the processor beside kernels
#   crc=0.38e-9               a byte of a file that is compared
#   base=0.27                 from the start of a process to step 1, beside the input
#   pages=1.6                 pages of 4 KiB that an example reads of a disk whose cache has none of its ids
# Prints a line for text that each process reads, and one for a corpus with each of the --check-inputs.
set -euo pipefail
exec awk 'BEGIN {
  p["hosts"] = 64; p["processes"] = 1; p["cores"] = 16; p["text"] = 16e9; p["batch"] = 256; p["length"] = 128
  p["steps"] = 1000000; p["step"] = 0.05; p["disk"] = 1e9; p["ids"] = 0.430; p["places"] = 0.0657
  p["prepare"] = 13.3e-9; p["tokenise"] = 13.3e-9; p["sentences"] = 0.00783; p["count"] = 2.1e-8; p["draw"] = 1.5e-4
  p["crc"] = 0.38e-9; p["base"] = 0.27; p["pages"] = 1.6
  for (i = 1; i < ARGC; ++i) {
    split(ARGV[i], pair, "=")
    if (!(pair[1] in p)) { print "input_model.sh: unknown name " pair[1] > "/dev/stderr"; exit 2 }
    p[pair[1]] = pair[2] + 0
  }
  all = p["hosts"] * p["processes"]
  files = p["text"] * (p["ids"] + p["places"])
  count = p["count"] * p["text"] * p["sentences"] * p["processes"] / p["cores"]  # each process counts all of it
  walk = p["text"] * p["places"] / p["disk"]                                     # the places are read once, by one of a host
  # Text: every process of a host tokenises all of it on its share of the cores, and keeps it.
  held = files * p["processes"]
  seconds = p["base"] + larger(p["text"] / p["disk"], p["tokenise"] * p["text"] * p["processes"] / p["cores"]) + count
  printf "%-22s %14s %16s %14s\n", "input", "held GB/host", "read at start GB", "to step 1 s"
  line("text", held, p["text"], seconds)
  line("corpus none", 0, p["text"] * p["places"], p["base"] + larger(walk, count))
  line("corpus index", 0, p["text"] * p["places"], p["base"] + larger(walk, count))
  # Each host reads its share through; the places are read by all.
  mine = files / p["hosts"]
  line("corpus all", 0, mine + p["text"] * p["places"], p["base"] + larger(walk, count) + larger(mine / p["disk"], p["crc"] * mine / p["cores"]))
  # A step: each host draws its share of the examples and touches their pages.
  examples = p["batch"] / p["hosts"]
  read = examples * p["pages"] * 4096
  printf "\na step: %.1f examples a host, %.0f kB read, %.3f ms of a core to draw them: %.2f %% of %.0f ms; disk %.2f %% busy\n",
         examples, read / 1e3, 1e3 * examples * p["draw"], 100 * examples * p["draw"] / p["step"], 1e3 * p["step"],
         100 * read / p["disk"] / p["step"]
  tokens = p["text"] * p["ids"] / 2
  printf "the run: %.1f epochs, %.1f hours; reads %.0f GB a host\n", p["steps"] * p["batch"] * p["length"] / tokens,
         p["steps"] * p["step"] / 3600, p["steps"] * read / 1e9
  printf "prepare corpus: %.0f s of one core, %.0f s on the %d of a host; %.1f GB of files\n", p["prepare"] * p["text"],
         p["prepare"] * p["text"] / p["cores"], p["cores"], files / 1e9
}
function larger(a, b) { return a > b ? a : b }
function line(name, held, read, seconds) { printf "%-22s %14.1f %16.2f %14.2f\n", name, held / 1e9, read / 1e9, seconds }' "$@"
