#!/usr/bin/env python3
"""Holds the readers of CSV and TSV against Python's csv module on generated tables.
usage: check_tables.py BENCH_ANSWERS COUNT SEED       needs nothing but Python
Tables are short texts of quotes, separators, ends of lines, blanks and letters, and what csv itself writes. A CR that no LF
follows is a letter here and the end of a row there: none is made. A line without anything is a row of one empty cell here
and no row there, and empty lines at the end do not count here. Prints a line; the exit code is 1 if anything differs."""
import csv
import io
import json
import random
import struct
import subprocess
import sys
import tempfile

PARTS = ['"', '"', '""', ",", ",", "\t", "\n", "\n", "\r\n", " ", "a", "b", "1", "é", "字", "'", ";", "\\", "#", "\ufeff", "\u2028", "\x0b", "\x85"]


def make(rng, separator):
    if rng.random() < 0.3:  # what others write
        out = io.StringIO()
        writer = csv.writer(out, delimiter=separator, lineterminator=rng.choice(["\n", "\r\n"]),
                            quoting=rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
        width = rng.randint(1, 4)
        for _ in range(rng.randint(1, 5)):
            writer.writerow(["".join(rng.choices(PARTS, k=rng.randint(0, 4))) for _ in range(width)])
        return out.getvalue()
    return "".join(rng.choices(PARTS, k=rng.randint(0, 24)))


def expect(kind, text):
    """Rows as csv reads them, in our terms; None if it refuses."""
    text = text.removeprefix("\ufeff")
    try:
        if kind == "csv":
            # csv is given lines that end at LF alone, as a file opened with newline="\n".
            rows = list(csv.reader(io.StringIO(text, newline="\n"), strict=True))
        else:
            rows = list(csv.reader(io.StringIO(text, newline="\n"), delimiter="\t", quoting=csv.QUOTE_NONE))
    except csv.Error:
        return None
    while rows and not rows[-1]:
        rows.pop()
    rows = [row or [""] for row in rows]
    return rows


def main():
    answers, count, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    rng = random.Random(seed)
    found = refused = compared = 0
    with tempfile.TemporaryDirectory() as directory:
        for kind, separator in (("csv", ","), ("tsv", "\t")):
            texts = [make(rng, separator) for _ in range(count // 2)]
            # Only CR before LF.
            texts = [t.replace("\r\n", "\n").replace("\r", "").replace("\n", "\r\n" if rng.random() < 0.3 else "\n") for t in texts]
            data = b"".join(struct.pack("<I", len(b)) + b for b in (t.encode() for t in texts))
            lines = subprocess.run([answers, kind, directory], input=data, stdout=subprocess.PIPE, check=True).stdout.decode().split("\n")[:-1]
            assert len(lines) == len(texts)
            for text, line in zip(texts, lines):
                answer, rows = json.loads(line), expect(kind, text)
                compared += 1
                if rows is None:
                    refused += 1
                    same = "error" in answer
                else:
                    kept = [row for row in rows if len(row) == len(rows[0])]
                    same = answer == {"rows": kept, "skipped": len(rows) - len(kept)}
                if not same:
                    found += 1
                    if found <= 10:
                        print(f"{kind}: {text!a}: ours {answer}, csv's {rows}")
    print(f"{compared} tables, {refused} refused by both, {found} differ")
    return found > 0


sys.exit(main())
