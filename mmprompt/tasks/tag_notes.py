"""Notes on misspelt AIS tags that go out as text."""

from __future__ import annotations

from mmprompt.segments import begins_tagged, near_miss, near_miss_in_text

RowNote = tuple[str, str, str]
"""The code of a note on a row, what was found, and what to do about it."""


def tag_note(name: str, text: str, *, by_rule: bool) -> RowNote | None:
    """Return a note if the text of a column holds a misspelt tag that is sent as text.

    ``by_rule``: the column is tagged whatever it holds. Any other is tagged if it begins with a start tag.
    """
    if by_rule or begins_tagged(text):
        if mark := near_miss_in_text(text):
            return "MM102", f"a text segment of '{name}' holds a misspelt tag, which is sent as text", f"correct {mark}"
    elif (found := near_miss(text)) and not text[: found[0]].strip():
        what = f"'{name}' begins with a misspelt tag, so it is sent as text and its tags are not read"
        return "MM102", what, f"write {found[2]} in place of {found[1]}"
    return None
