"""Notes on misspelt AIS tags that go out as text."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from mmprompt.segments import TERMINATOR, begins_tagged, near_miss, near_miss_in_text
from mmprompt.templates.sample_view import CONTENT

RowNote = tuple[str, str, str]
"""The code of a note on a row, what was found, and what to do about it."""


def tag_notes(columns: Mapping[str, object], tagged: Collection[str] | None) -> Iterator[RowNote]:
    """Yield a note for each column of a scanned row that sends a misspelt tag as text.

    ``tagged`` names the tagged columns beside ``content``; with None they are those that begin with a start tag.
    """
    for name, value in columns.items():
        if type(value) is not str or value.count("<") == 2 * value.count(TERMINATOR):
            continue  # no "<" but those of pairs of tags, as in nearly all rows
        if name == CONTENT or (begins_tagged(value) if tagged is None else name in tagged):
            if mark := near_miss_in_text(value):
                yield (
                    "MM102",
                    f"a text segment of '{name}' holds a misspelt tag, which is sent as text",
                    f"correct {mark}",
                )
        elif tagged is None and (found := near_miss(value)) and not value[: found[0]].strip():
            hint = f"write {found[2]} in place of {found[1]}"
            yield "MM102", f"'{name}' begins with a misspelt tag, so it is sent as text and its tags are not read", hint
