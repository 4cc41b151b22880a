#!/usr/bin/env python3
"""Holds `prepare tokens` against Google's tokenization.py and Hugging Face's tokenizers on generated strings.
usage: check_tokenizer.py PREPARE VOCAB GOOGLE COUNT SEED [--cased] [--google-share 0.05]     GOOGLE: tokenization.py
Needs tokenizers. COUNT strings go through Hugging Face's, a share of them through Google's too, which is the definition: it
must agree on every string, bytes that are no UTF-8 among them. Hugging Face's differs on purpose, and such strings are
counted, not compared: see different(). Prints a line; what differs comes before it, and the exit code is 1."""
import argparse
import os
import subprocess
import sys
import types
import unicodedata

os.environ["TOKENIZERS_PARALLELISM"] = "false"
import numpy as np
import tokenizers

BATCH = 200_000


def google_tokenizer(path, vocab, lower):
    """Google's FullTokenizer, whose two imports are stood in for."""
    six = types.SimpleNamespace(PY3=True, PY2=False)
    flow = types.SimpleNamespace(gfile=types.SimpleNamespace(GFile=lambda name, mode: open(name, "rb")))
    sys.modules["six"], sys.modules["tensorflow"] = six, flow
    module = types.ModuleType("tokenization")
    exec(compile(open(path).read(), path, "exec"), module.__dict__)
    return module.FullTokenizer(vocab, do_lower_case=lower)


def different(peer, google):
    """Code points of which Hugging Face's tokenizers, alone between two letters, make something else than Google's code: those
    that are not assigned or private (dropped there), those whose category is of a later Unicode than the tables there, and
    U+2B820 to U+2B91F, which are ideographs for Google's code alone."""
    found = {"\u03a3"}  # Python lowers a final capital sigma to another letter than one inside a word
    for c in map(chr, range(1, 0x110000)):
        category = unicodedata.category(c)
        if category in ("Cn", "Co", "Cs"):
            found.add(c)
        elif not (0xAC00 <= ord(c) < 0xD7A4 or 0x3400 <= ord(c) < 0xA000 or 0x20000 <= ord(c) < 0x2B820 or 0x2B920 <= ord(c)):
            text = f"a{c}a"
            words = [word for word, _ in peer.pre_tokenizer.pre_tokenize_str(peer.normalizer.normalize_str(text))]
            if words != google.basic_tokenizer.tokenize(text):
                found.add(c)
    return found


def atoms(vocab, random):
    """What strings are put together from: pieces, and code points of every kind, the rarer kinds as often as others."""
    pieces = [line.rstrip("\n") for line in open(vocab, encoding="utf-8")]
    words = [p.removeprefix("##") for p in pieces if not p.startswith("[")]
    kinds = {}
    for code in range(1, 0x110000):
        c = chr(code)
        if c != "\n" and not 0xD800 <= code < 0xE000:
            kinds.setdefault((unicodedata.category(c), code < 0x80, code < 0x3000), []).append(c)
    rewritten = [c for c in map(chr, range(0x80, 0x20000)) if not 0xD800 <= ord(c) < 0xE000 and
                 (c.lower() != c or unicodedata.normalize("NFD", c) != c)]
    marks = [c for c in map(chr, range(0x300, 0x20000)) if unicodedata.category(c) == "Mn"]

    def some(pool, count):
        return [pool[i] for i in random.integers(0, len(pool), count)]

    unusual = [c for pool in kinds.values() for c in some(pool, 60)]
    chosen = some(words, 3000) + [w.upper() for w in some(words, 500)] + some(unusual, 1200) + some(rewritten, 900) + some(marks, 500)
    chosen += [" "] * 1500 + list("abcABC.,'-\t#[]") * 30 + ["##", "[MASK]", "[UNK]", "x" * 99, "y" * 101, "\u0130", "\u03c3", "\u0345", "\u1e9e"] * 3
    return np.array(chosen, dtype=object)


def ours(prepare, vocab, cased, data):
    command = [prepare, "tokens", "--vocab-file", vocab, "--threads", "1"] + (["--cased"] if cased else [])
    run = subprocess.run(command, input=data, capture_output=True)
    if run.returncode != 0:
        sys.exit(run.stderr.decode())
    return run.stdout.decode().split("\n")[:-1]


def main():
    parser = argparse.ArgumentParser()
    for name in ("prepare", "vocab", "google"):
        parser.add_argument(name)
    for name in ("count", "seed"):
        parser.add_argument(name, type=int)
    parser.add_argument("--cased", action="store_true")
    parser.add_argument("--google-share", type=float, default=0.05)
    options = parser.parse_args()

    random = np.random.default_rng(options.seed)
    model = tokenizers.models.WordPiece.from_file(options.vocab, unk_token="[UNK]", max_input_chars_per_word=200)
    peer = tokenizers.Tokenizer(model)
    peer.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=not options.cased)
    peer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    google = google_tokenizer(options.google, options.vocab, not options.cased)
    apart_of = different(peer, google)

    compared = by_google = apart = found = 0

    def complain(who, text, mine, theirs):
        nonlocal found
        found += 1
        if found <= 20:
            print(f"{who}: {text!a}: ours {mine}, theirs {theirs}")

    while compared + apart < options.count:
        pool = atoms(options.vocab, random)
        ends = random.integers(0, 9, BATCH * 8) == 0
        picked = pool[random.integers(0, len(pool), BATCH * 8)]
        picked[ends] = "\n"
        strings = "".join(picked).split("\n")[:options.count - compared - apart]
        got = ours(options.prepare, options.vocab, options.cased, "".join(s + "\n" for s in strings).encode())
        assert len(got) == len(strings), (len(got), len(strings))
        plain = [i for i, s in enumerate(strings) if apart_of.isdisjoint(s)]
        apart += len(strings) - len(plain)
        compared += len(plain)
        encoded = peer.encode_batch_fast([strings[i] for i in plain], add_special_tokens=False)
        for i, encoding in zip(plain, encoded):
            if (theirs := " ".join(map(str, encoding.ids))) != got[i]:
                complain("tokenizers", strings[i], got[i], theirs)
        share = [s.encode() for s in strings[:int(len(strings) * options.google_share)]]
        for i in range(0, len(share), 5):  # bytes that are no UTF-8
            spoiled = bytearray(share[i])
            for _ in range(2):
                spoiled.insert(int(random.integers(0, len(spoiled) + 1)), int(random.choice([0x80, 0xC3, 0xE2, 0xED, 0xF0, 0xFF, 0xBF])))
            share[i] = bytes(spoiled)
        by_google += len(share)
        for data, mine in zip(share, ours(options.prepare, options.vocab, options.cased, b"".join(s + b"\n" for s in share))):
            theirs = " ".join(map(str, google.convert_tokens_to_ids(google.tokenize(data))))
            if theirs != mine:
                complain("Google", data, mine, theirs)
    print(f"{compared} strings held against tokenizers {tokenizers.__version__} and {by_google} against Google's code: {found} differ; "
          f"{apart} more have one of the {len(apart_of)} code points of which those two make different words")
    return found > 0


sys.exit(main())
