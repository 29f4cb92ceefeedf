"""The recorded reference: a hash of the lines, the errors, the notes and the end of each case and door.

    python tests/recorded/reference.py RECORD.jsonl   # write fixtures/recorded/reference.json.gz anew

It was recorded from commit 010a3094. What differs from it on purpose stands with its reason and its new hash in
``fixtures/recorded/differences.json``, which ``compare.py --state`` writes.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
import corpus

FOLDER = Path(__file__).resolve().parents[2] / "fixtures" / "recorded"
REFERENCE, DIFFERENCES = FOLDER / "reference.json.gz", FOLDER / "differences.json"
PARTS = ("lines", "errors", "notes", "end")
"""The parts of a record, in the order of their hashes."""

Hashes = dict[str, str]
"""A hash for each part"""


def hashes(record: Mapping[str, Any]) -> Hashes:
    """Return the hash of each part of a record.

    Of media that are encoded anew, neither bytes nor numbers count: other releases of the libraries write others.
    """
    kind = record["case"].partition("/")[0]
    texts = {part: json.dumps(record[part]) for part in PARTS}
    if kind == "changed_media":
        texts = {part: re.sub(r"[\w+/=]{40,}|\d[\d,.]*", "…", text) for part, text in texts.items()}
    return {part: sha256(text.encode()).hexdigest()[:8] for part, text in texts.items()}


def stated() -> dict[tuple[str, str, str], str]:
    """Return the new hash of each stated difference, by case, door and part."""
    found = {}
    for difference in json.loads(DIFFERENCES.read_text(encoding="utf-8")):
        for case, doors in difference["hashes"].items():
            for door, parts in doors.items():
                found.update({(case, door, part): value for part, value in parts.items()})
    return found


def expected() -> dict[str, dict[str, Hashes]]:
    """Return the hashes that hold now, by case and door: the recorded ones with the stated differences."""
    packed = json.loads(gzip.decompress(REFERENCE.read_bytes()))
    split = {
        case: {door: {part: text[8 * at : 8 * at + 8] for at, part in enumerate(PARTS)} for door, text in doors.items()}
        for case, doors in packed.items()
    }
    for (case, door, part), value in stated().items():
        split[case][door][part] = value
    return split


def records(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of a file that ``record.py`` wrote."""
    with path.open(encoding="ascii") as file:
        yield from map(json.loads, file)


def main() -> None:
    packed: dict[str, dict[str, str]] = {}
    for record in records(Path(sys.argv[1])):
        packed.setdefault(record["case"], {})[record["door"]] = "".join(hashes(record).values())
    missing = set(corpus.names()) - packed.keys()
    if missing:
        sys.exit(f"the record lacks {len(missing)} cases, such as {min(missing)}")
    REFERENCE.write_bytes(gzip.compress(json.dumps(packed).encode(), 9, mtime=0))
    print(
        f"{REFERENCE.name}: {len(packed)} cases, {sum(map(len, packed.values()))} doors, {REFERENCE.stat().st_size:,} bytes"
    )


if __name__ == "__main__":
    main()
