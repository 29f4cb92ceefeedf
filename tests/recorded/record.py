"""Record what the package that can be imported makes of the corpus.

    python tests/recorded/record.py OUT.jsonl                  # all cases; two to four minutes
    python tests/recorded/record.py OUT.jsonl tags columns/3   # some kinds and cases
    PYTHONPATH=../other/checkout python tests/recorded/record.py OUT.jsonl

A line holds a case and one door: its lines, errors, notes and how it ended. ``compare.py`` compares two such files.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
import corpus
from corpus_doors import record

import mmprompt


def chosen(words: Sequence[str]) -> list[str]:
    """Return the names of cases; a kind stands for all of its cases."""
    every = corpus.names()
    unknown = [word for word in words if word not in every and word not in corpus.KINDS]
    if unknown:
        sys.exit(f"no kind or case is called {unknown[0]}; the kinds are {', '.join(corpus.KINDS)}")
    return [name for name in every if not words or name in words or name.partition("/")[0] in words]


def recorded(names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield a record for each case and door, made in a new folder."""
    with corpus.work_folder() as folder:
        for name in names:
            case = corpus.made(name)
            if corpus.can_run(case):
                corpus.put(case, folder)
                for door in corpus.doors(name, case):
                    yield {"case": name, "door": door, **record(case, door)}


def main() -> None:
    parser = argparse.ArgumentParser(description="Record what comes out of the corpus.")
    parser.add_argument("output", type=Path, metavar="OUT.jsonl")
    parser.add_argument("cases", nargs="*", help="kinds or cases, such as tags or tags/3; by default all")
    given = parser.parse_args()
    began, count, rows = time.perf_counter(), 0, 0
    with given.output.open("w", encoding="ascii") as file:
        for one in recorded(chosen(given.cases)):
            file.write(json.dumps(one) + "\n")
            count += 1
            rows += len(one["lines"]) + len(one["errors"])
    took, size = time.perf_counter() - began, given.output.stat().st_size
    print(f"{count} records of {rows} rows, {size:,} bytes, {took:.0f} s, of {os.path.dirname(mmprompt.__file__)}")


if __name__ == "__main__":
    main()
