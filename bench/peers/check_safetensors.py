#!/usr/bin/env python3
"""Holds the reader of safetensors against the reference library on mutated files.
usage: check_safetensors.py BENCH_ANSWERS COUNT SEED       needs safetensors
What the library accepts must be accepted with the same names, types, shapes and bytes, what it refuses must be refused. What
is refused here on purpose is counted: see on_purpose(). Prints a line; the exit code is 1 if anything else differs."""
import collections
import json
import random
import re
import struct
import subprocess
import sys
import tempfile

import safetensors

TYPES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1, "F8_E4M3": 1, "U16": 2, "U32": 4, "U64": 8, "C64": 8}
NUMBERS = ["0", "1", "2", "3", "8", "-1", "1.0", "1e2", "0x1", "18446744073709551615", "18446744073709551616", "281474976710657", "9223372036854775808", "null", "true", '"1"', "[]", "01", "-0"]
WORDS = ['"a"', '"F32"', '"F16"', '"BF16"', '"f32"', '"F4"', '"F6_E2M3"', '"dtype"', '"shape"', '"data_offsets"', '"__metadata__"', "{", "}", "[", "]", ",", ":", " ", "\n", "\\u0061", "\\ud800", "\x00", "\x7f", "é", "[0,0]", "{}", '""']


def make(rng):
    """A good file of some tensors as (header text, data)."""
    header, at = {}, 0
    if rng.random() < 0.3:
        header["__metadata__"] = {"format": "pt", "x": rng.choice(["", "é", "1"])}
    for i in range(rng.randint(0, 4)):
        kind = rng.choice(list(TYPES))
        shape = [rng.randint(0, 3) for _ in range(rng.randint(0, 3))]
        size = TYPES[kind]
        for dim in shape:
            size *= dim
        header[rng.choice(["a", "b", "weight", "é", "a.b", ""]) + str(i)] = {"dtype": kind, "shape": shape, "data_offsets": [at, at + size]}
        at += size
    items = list(header.items())
    rng.shuffle(items)
    text = json.dumps(dict(items), ensure_ascii=rng.random() < 0.5, separators=rng.choice([(",", ":"), (", ", ": ")]))
    return text.encode() + b" " * rng.choice([0, 0, -len(text) % 8]), bytes(rng.randrange(256) for _ in range(at))


def mutate(rng, text, data):
    length = None
    for _ in range(rng.choice([0, 1, 1, 1, 2, 3])):
        kind = rng.randrange(9)
        if kind == 0:  # a number becomes another
            numbers = list(re.finditer(rb"-?\d+", text))
            if numbers:
                m = rng.choice(numbers)
                text = text[:m.start()] + rng.choice(NUMBERS).encode() + text[m.end():]
        elif kind == 1:  # a token is put in
            at = rng.randint(0, len(text))
            text = text[:at] + rng.choice(WORDS).encode() + text[at:]
        elif kind == 2:  # a part goes, or comes twice
            a, b = sorted((rng.randint(0, len(text)), rng.randint(0, len(text))))
            text = text[:a] + text[b:] if rng.random() < 0.5 else text[:b] + text[a:b] + text[b:]
        elif kind == 3 and text:
            at = rng.randrange(len(text))
            text = text[:at] + bytes([rng.randrange(256)]) + text[at + 1:]
        elif kind == 4:
            words = list(re.finditer(rb'"[^"]*"', text))
            if words:
                m = rng.choice(words)
                text = text[:m.start()] + rng.choice(WORDS).encode() + text[m.end():]
        elif kind == 5:
            data = data[:rng.randint(0, len(data))] if rng.random() < 0.5 else data + bytes(rng.randint(1, 9))
        elif kind == 6:
            length = rng.choice([0, 1, len(text) - 1, len(text) + 1, len(text) + len(data), len(text) + len(data) + 1, 100_000_001, 1 << 63])
        elif kind == 7:
            text = rng.choice([b" ", b"\n", b"\xef\xbb\xbf", b"\t"]) + text if rng.random() < 0.5 else text + rng.choice([b" ", b"\n", b"\x00", b"x", b"{}"])
        else:  # two tensors change places
            text = text.replace(b"0", b"\x01").replace(b"1", b"0").replace(b"\x01", b"1", 1).replace(b"\x01", b"0")
    if length is None:
        length = len(text)
    file = struct.pack("<Q", max(0, length)) + text + data
    return file[:rng.randint(0, len(file))] if rng.random() < 0.03 else file


def reference(file):
    try:
        entries = safetensors.deserialize(file)
    except safetensors.SafetensorError:
        return None
    tensors = {}
    for name, tensor in entries:
        total = 0
        for byte in bytes(tensor["data"]):
            total = 31 * total % 1_000_003 + byte
        tensors[name] = [tensor["dtype"], list(tensor["shape"]), len(tensor["data"]), total]
    return tensors


def names_twice(file):
    """Whether an object of the header has a key twice."""
    def pairs(items):
        if len({key for key, _ in items}) < len(items):
            raise LookupError
        return dict(items)
    try:
        json.loads(file[8:8 + struct.unpack("<Q", file[:8])[0]].decode(), object_pairs_hook=pairs)
    except LookupError:
        return True
    return False


def on_purpose(file, error):
    """What the library reads and we refuse: the part of our message that says why. A header that does not begin with a brace is
    against the format's own words; the others are two readings of one file, or shapes that no memory holds."""
    for reason in ("expected the fields dtype, shape and data_offsets", "and no NUL", "dimensions of at most", "expected it to begin with"):
        if reason in error:
            return reason
    return "a key comes twice" if names_twice(file) else None


def main():
    answers, count, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    rng = random.Random(seed)
    files = [mutate(rng, *make(rng)) for _ in range(count)]
    data = b"".join(struct.pack("<I", len(f)) + f for f in files)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        lines = subprocess.run([answers, "safetensors", directory], input=data, stdout=subprocess.PIPE, check=True).stdout.decode().split("\n")[:-1]
    assert len(lines) == count
    totals, found = collections.Counter(), 0
    for file, line in zip(files, lines):
        answer, expected = json.loads(line), reference(file)
        if expected is None and "error" in answer:
            totals["refused by both"] += 1
        elif expected is not None and answer.get("tensors") == expected:
            totals["read by both"] += 1
        elif expected is not None and "error" in answer and on_purpose(file, answer["error"]):
            totals["refused here on purpose: " + on_purpose(file, answer["error"])] += 1
        else:
            found += 1
            if found <= 12:
                print(f"{file!a}: ours {answer}, the library's {expected}")
    print(f"{count} files: " + ", ".join(f"{n} {what}" for what, n in sorted(totals.items())) + f"; {found} differ")
    return found > 0


sys.exit(main())
