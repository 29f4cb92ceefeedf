"""Placeholders: marks in a text, such as ``<image>``, that say where its media stand."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from mmprompt.datasets.sample import column_error
from mmprompt.errors import RowError
from mmprompt.messages import MODALITIES, MediaPart, MediaRef, Part, TextPart

MARK = re.compile(r"<(image|video|audio)(?: (\d{1,3}))?>")
"""``<image>`` stands for the next image, ``<image 2>`` for the second."""

MARKUP = r"\b(?:HTML5?|SVG|XML|elements?|tags?)\b"
"""Words of texts that speak of elements of HTML."""


class MediaQueue:
    """The media of a row, in the order in which its marks take them; marks with a number may come again.

    Args:
        media: for each modality its sources in order. A numbered mark takes the source at that position, from 1.
        form: what a mark looks like; ``%s`` stands for the modality.
    """

    def __init__(self, media: Mapping[str, Sequence[object]], form: str = "<%s>") -> None:
        self._media = media
        self._form = form
        self._next = dict.fromkeys(media, 0)
        self._numbered: set[tuple[str, int]] = set()

    def place(self, text: str) -> list[TextPart | MediaRef]:
        """Return a text as parts, each mark replaced by its medium.

        The line break between a mark and a text only separates the two, so one on each side is left out. A text of
        blanks between two media is left out.

        Raises:
            RowError: a mark has no medium.
        """
        parts: list[TextPart | MediaRef] = []
        end = 0
        for mark in MARK.finditer(text):
            _add_text(parts, text[end : mark.start()], before=bool(end), after=True)
            parts.append(self.take(mark[1], int(mark[2]) if mark[2] else None, mark[0]))
            end = mark.end()
        _add_text(parts, text[end:], before=bool(end), after=False)
        return parts

    def take(self, modality: str, number: int | None = None, mark: str = "") -> MediaRef:
        """Return the medium that a mark stands for: the next one, or that of its number.

        Raises:
            RowError: the row has no such medium.
        """
        sources = self._media.get(modality, ())
        at = self._next.get(modality, 0) if number is None else number - 1
        if not 0 <= at < len(sources) or sources[at] is None:
            held = sum(source is not None for source in sources)
            again = f"more than {held} mark{'s' * (held != 1)} " if held and number is None else ""
            mark = mark or self._form % modality
            what = f"the text holds {again}{mark}, but the row has {held} {modality}{'s' * (held != 1)}"
            raise RowError(what, "give each mark its medium, or remove the mark", code="MM108")
        if number is not None:
            self._numbered.add((modality, at))
        else:
            self._next[modality] = at + 1
        return MediaRef(modality, sources[at])

    def unplaced(self) -> list[MediaRef]:
        """Return the media that no mark has taken."""
        return [
            MediaRef(modality, source)
            for modality, sources in self._media.items()
            for at, source in enumerate(sources)
            if source is not None and at >= self._next[modality] and (modality, at) not in self._numbered
        ]

    def close(self, column: str | None = None) -> None:
        """Refuse media that no mark has taken.

        Raises:
            RowError: there are more media than marks.
        """
        if left := self.unplaced():
            modality = left[0].modality
            count = sum(ref.modality == modality for ref in left)
            what = f"{count} {modality}{'s have' if count > 1 else ' has'} no mark {self._form % modality} in the text"
            raise column_error(column, what, "write a mark where each medium stands", "MM108")


def _add_text(parts: list[TextPart | MediaRef], text: str, *, before: bool, after: bool) -> None:
    """Add the text between two marks; ``before`` and ``after`` say whether a mark is at that side."""
    if before:
        text = text.removeprefix("\n")
    if after:
        text = text.removesuffix("\n")
    if text and not ((before or after) and text.isspace()):
        parts.append(TextPart(text))


def holds_mark(text: str) -> bool:
    """Return whether a text holds a mark, which a reader would take for a medium."""
    return "<" in text and MARK.search(text) is not None


def marked_text(parts: Sequence[Part]) -> tuple[str, dict[str, list[MediaRef | MediaPart]]]:
    """Return parts as a text with marks, and the media of each modality: the inverse of ``MediaQueue.place``.

    Raises:
        RowError: a text holds a mark, or is blank beside a medium, so that it would not be read back.
    """
    pieces: list[str] = []
    media: dict[str, list[MediaRef | MediaPart]] = {modality: [] for modality in MODALITIES}
    text_before = marked = False
    for part in parts:
        if isinstance(part, TextPart):
            if holds_mark(part.text):
                raise RowError(
                    "a text holds a mark such as <image>, which would be read as a medium", "reword it", code="MM107"
                )
            if text_before or (part.text.isspace() and len(parts) > 1):
                raise RowError(
                    "neighbouring or blank texts would not be read back as they are", "join the texts", code="MM800"
                )
            pieces.append(f"\n{part.text}" if marked else part.text)
            text_before = True
        else:
            media[part.modality].append(part)
            pieces.append(f"\n<{part.modality}>" if text_before else f"<{part.modality}>")
            text_before, marked = False, True
    return "".join(pieces), media
