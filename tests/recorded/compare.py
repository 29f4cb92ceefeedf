"""Compare two records of the corpus: which kinds of cases differ, how often, and the first difference of each.

    python tests/recorded/compare.py BEFORE.jsonl AFTER.jsonl
    python tests/recorded/compare.py BEFORE.jsonl AFTER.jsonl choices/5 --door messages   # in full
    python tests/recorded/compare.py BEFORE.jsonl AFTER.jsonl choices --state "A choice that is NaN is left out."

The last form states the differences of these kinds or cases, with the reason, in ``fixtures/recorded/differences.json``,
whose hashes hold from then on. Exit code 1: there are differences that are not stated.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from reference import DIFFERENCES, PARTS, hashes, records, stated

_AROUND, _SHOWN = 60, 160
Change = tuple[str, str, str, str, Any, Any]
"""Case, door, part, where in the part, before, after"""


def changes(before: Path, after: Path, cases: Sequence[str], door: str) -> Iterator[Change]:
    """Yield each element that differs in the cases and doors that both records hold, and is not stated."""
    places = {(one["case"], one["door"]): at for at, one in enumerate(records(after))}
    others = enumerate(records(after))
    known = stated()
    for one in records(before):
        key = one["case"], one["door"]
        if key not in places or door not in key[1] or not (not cases or {key[0], key[0].partition("/")[0]} & {*cases}):
            continue
        found = next(other for at, other in others if at == places[key])
        if one != found:
            new = hashes(found)
            yield from (change for change in _within(one, found) if known.get((*key, change[2])) != new[change[2]])


def _within(before: dict[str, Any], after: dict[str, Any]) -> Iterator[Change]:
    for part in PARTS:
        old, new = before[part], after[part]
        if old == new:
            continue
        if not isinstance(old, list) or not isinstance(new, list):
            yield before["case"], before["door"], part, "", old, new
            continue
        for at, (x, y) in enumerate(zip_longest(old, new)):
            if x != y:
                yield before["case"], before["door"], part, f"[{at}]", x, y


def excerpts(before: Any, after: Any, *, full: bool = False) -> tuple[str, str]:
    """Return two values as texts, cut to what stands around the first difference."""
    texts = [
        "nothing" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for value in (before, after)
    ]
    first = next((at for at, (x, y) in enumerate(zip(*texts, strict=False)) if x != y), min(map(len, texts)))
    start = 0 if full else max(first - _AROUND, 0)
    cut = [text[start:] if full else text[start : start + _SHOWN] for text in texts]
    shown = ["".join(c if c.isprintable() else repr(c)[1:-1] for c in text) for text in cut]
    return ("…" if start else "") + shown[0], ("…" if start else "") + shown[1]


def state(reason: str, found: Sequence[Change], after: Path) -> None:
    """Add the differences to those that are stated for this reason, with their new hashes."""
    parts: dict[tuple[str, str], set[str]] = {}
    for case, door, part, *_ in found:
        parts.setdefault((case, door), set()).add(part)
    kept = json.loads(DIFFERENCES.read_text(encoding="utf-8"))
    entry = next((entry for entry in kept if entry["reason"] == reason), None)
    if entry is None:
        kept.append(entry := {"reason": reason, "hashes": {}})
    for record in records(after):
        case, door = record["case"], record["door"]
        new = {part: value for part, value in hashes(record).items() if part in parts.get((case, door), ())}
        if new:
            entry["hashes"].setdefault(case, {}).setdefault(door, {}).update(new)
    DIFFERENCES.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare two records of the corpus.")
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("cases", nargs="*", help="kinds or cases; by default all")
    parser.add_argument(
        "--door", default="", metavar="WORD", help="only doors whose name holds this, such as 'openai batch'"
    )
    parser.add_argument("--state", metavar="REASON", help="state the differences that are found, for this reason")
    given = parser.parse_args()
    found = [*changes(given.before, given.after, given.cases, given.door)]
    counts = Counter((case.partition("/")[0], door.partition(" ")[0], part) for case, door, part, *_ in found)
    told: set[tuple[str, str, str]] = set()
    for case, door, part, where, old, new in found:
        group = case.partition("/")[0], door.partition(" ")[0], part
        if group in told and not given.cases:
            continue
        if group not in told:
            print(f"\n{' '.join(group)}: {counts[group]}")
            told.add(group)
        before, after = excerpts(old, new, full=bool(given.cases and given.door))
        print(f"  {case}, {door}, {part}{where}\n    - {before}\n    + {after}")
    doors = {(case, door) for case, door, *_ in found}
    print(f"\n{len(found)} differences in {len(doors)} records of {len({case for case, _ in doors})} cases")
    if given.state and found:
        state(given.state, found, given.after)
        print(f"stated in {DIFFERENCES.name}")
    elif found:
        sys.exit(1)


if __name__ == "__main__":
    main()
