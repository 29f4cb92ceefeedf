"""Lists where mmprompt and the recorded right results part, and writes mmprompt's results into the fixture.

    python tests/reference_record.py            # prints each case whose result is not the right one
    python tests/reference_record.py --record   # writes the results that the fixture gives outright, and those alone

What follows from upstream's result by a rule is never written. A new difference is added to ``differences.json`` by
hand, with its reason and ``{"gives": null}``. An error is written with all that it says: keep the fragment that the
case is about. Read what was written before you commit it.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from reference_rules import DIFFERENCES, LISTED, REFUSALS, agrees, expected, is_outright
from reference_runner import run
from reference_values import CASES, REFERENCE


def main(arguments: list[str]) -> int:
    """Compare all cases; with ``--record`` write what differs."""
    parted = {name: given for name, case in CASES.items() if not agrees_with_one(given := run(case), case)}
    for name, given in parted.items():
        print(f"{name}\n  right: {as_json(expected(CASES[name]))}\n  given: {as_json(given)}")
    if "--record" in arguments:
        written = [name for name, given in parted.items() if written_down(name, given)]
        (REFERENCE / "differences.json").write_text(as_lines(LISTED), encoding="utf-8")
        print(f"{len(written)} of {len(parted)} results written; the others follow from rules, or need a reason first")
    return 1 if parted else 0


def agrees_with_one(given: Any, case: dict[str, Any]) -> bool:
    """Compare a result with the right values of its case."""
    return any(agrees(given, right) for right in expected(case))


def written_down(name: str, given: Any) -> bool:
    """Put a result in the place of the one that the fixture gives for a case, if it gives one outright."""
    if name in REFUSALS:
        REFUSALS[name] = given
        return True
    for reason, how in DIFFERENCES.get(name, {}).items():
        if is_outright(how):
            refused = isinstance(given, dict) and "error" in given
            DIFFERENCES[name][reason] = given if refused else {"gives": given}
            return True
    return False


def as_json(value: Any) -> str:
    """Return a value as JSON on one line, in its own letters."""
    return json.dumps(value, ensure_ascii=False)


def as_lines(listed: dict[str, dict[str, Any]]) -> str:
    """Return the fixture as JSON, a case a line."""
    parts = []
    for key, entries in listed.items():
        lines = [f"    {as_json(name)}: {as_json(entry)}" for name, entry in entries.items()]
        parts.append(f'  "{key}": {{\n' + ",\n".join(lines) + "\n  }")
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
