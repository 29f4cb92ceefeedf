"""One ``prompt_mm``: its skeletons compiled, and the content parts they give for a sample."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from mmprompt.errors import MMPromptError, TemplateError, nearest
from mmprompt.segments import Segment
from mmprompt.slots import Slot, SlotText
from mmprompt.templates.dialogue import Tokens, filled
from mmprompt.templates.entry import CONTENT, Entry
from mmprompt.templates.skeleton import MEDIA, MediaSkeleton, TextSkeleton, compile_media, compile_text_skeleton

KEYS = ("text", *MEDIA, "mm_url")

Fed = tuple[str, Segment]
"""a segment and the column it comes from"""


class Keyed(NamedTuple):
    """A part and the key of ``prompt_mm`` that made it."""

    key: str
    part: dict[str, Any]


class ContentItem:
    """What a role of a multimodal template says: content parts."""

    __slots__ = ("_by_key", "_column", "_media",  "_order_keys", "_place", "_repeat", "_text", "has_marker",
        "names",
    )

    def __init__(
        self, prompt_mm: object, tokens: Tokens, place: str, *, column: str | None, by_key: bool, repeat_text: bool
    ) -> None:
        if not isinstance(prompt_mm, Mapping) or not prompt_mm:
            raise TemplateError("prompt_mm is no dict of modality to content part", "see MMPromptTemplate").located(
                template=place
            )
        self._place = place
        self._column = column
        self._by_key = by_key
        self._repeat = repeat_text
        self._text: TextSkeleton | None = None
        self._media: dict[str, MediaSkeleton] = {}
        names: dict[str, None] = {}
        for key, skeleton in prompt_mm.items():
            if key not in KEYS:
                raise TemplateError(f"unknown modality '{key}' in prompt_mm", nearest(key, KEYS)).located(
                    template=place
                )
            if key == "text":
                self._text = compile_text_skeleton(skeleton, tokens, f"{place}['text']")
                names.update(dict.fromkeys(self._text.text.columns))
            else:
                self._media[key] = compile_media(key, skeleton, tokens, f"{place}['{key}']")
                names.update(dict.fromkeys(self._media[key].columns))
        self.names = tuple(names)
        self.has_marker = self._text is not None and self._text.text.has_marker
        self._order_keys = tuple(prompt_mm)

    def render(self, entry: Entry, examples: str) -> list[dict[str, Any]]:
        """Return the content parts for ``entry``.

        Raises:
            TemplateError: a segment that no skeleton or slot receives, or a sample that gives no part at all.
            MMPromptError: the tags or a source of the sample are at fault; ``where.column`` says where.
        """
        tagged = self._tagged(entry)
        if tagged:
            parts = list(self._from_segments(entry, tagged, examples))
        else:
            parts = list(self._from_columns(entry, self._order_keys, entry.columns, examples))
        if not parts:
            raise TemplateError(
                "the sample gives no content part", f"fill {self._expected(tagged)}, or drop the row"
            ).located(template=self._place, column=next(iter(tagged), None))
        if self._by_key:
            parts.sort(key=lambda keyed: self._order_keys.index(keyed.key))
        return [keyed.part for keyed in parts]

    def _expected(self, tagged: Mapping[str, object]) -> str:
        return f"column {', '.join(tagged or self.names or (CONTENT,))}"

    def _tagged(self, entry: Entry) -> dict[str, list[Segment]]:
        """Return the tagged columns that feed this item, with their segments."""
        if self._column is not None:
            if self._column not in entry.columns:
                raise TemplateError(
                    f"the sample has no column '{self._column}'", nearest(self._column, entry.columns)
                ).located(template=self._place)
            return {self._column: entry.segments(self._column, outright=True) or []}
        named = {name: segments for name in self.names if (segments := entry.segments(name)) is not None}
        if not named and (content := entry.segments(CONTENT)) is not None:
            return {CONTENT: content}
        return named

    def _from_segments(self, entry: Entry, tagged: Mapping[str, list[Segment]], examples: str) -> Iterator[Keyed]:
        fed: list[Fed] = [(c, s) for c, segments in tagged.items() for s in segments if s.value != ""]
        texts = [f for f in fed if f[1].modality == "text"]
        columns = {**entry.columns, **dict.fromkeys(tagged, "")}
        if CONTENT in tagged:
            columns["question"] = ""
        used = {s.modality for _, s in fed}
        plain = [k for k in self._media if k not in used and not (k == "mm_url" and used & set(MEDIA))]
        at = self._order_keys.index("text") if self._text else len(self._order_keys)
        early = [k for k in plain if self._order_keys.index(k) < at]
        yield from self._from_columns(entry, early, columns, examples)
        number = 0
        for column, segment in fed:
            try:
                if segment.modality == "text":
                    yield self._text_part(column, segment, columns, (number == 0, number == len(texts) - 1), examples)
                    number += 1
                else:
                    yield self._media_part(column, segment, columns)
            except MMPromptError as error:
                raise error.located(column=column, offset=segment.start, template=self._place) from None
        yield from self._from_columns(entry, [k for k in plain if k not in early], columns, examples)
        if fed and not texts and self._text is not None and not self._text.is_only(own_slots(tagged)):
            yield from self._from_columns(entry, ["text"], columns, examples)

    def _text_part(
        self, column: str, segment: Segment, columns: Mapping[str, object], ends: tuple[bool, bool], examples: str
    ) -> Keyed:
        if self._text is None:
            raise TemplateError("the sample has text and the template no text part", "add 'text' to prompt_mm")
        own = own_slots([column])
        if not own & set(self._text.text.columns):
            raise TemplateError(
                "a text segment that no slot of the template receives",
                f"write {{{'question' if column == CONTENT else column}}} in the text part",
            )
        text = self._text.text
        if not self._repeat:
            text = _around(text, own, *ends)
        values = {**columns, **dict.fromkeys(own, segment.value)}
        return Keyed("text", self._text.part(filled(text, values, examples, self._place)))

    def _media_part(self, column: str, segment: Segment, columns: Mapping[str, object]) -> Keyed:
        key = segment.modality if segment.modality in self._media else "mm_url"
        skeleton = self._media.get(key)
        if skeleton is None:
            raise TemplateError(
                f"the sample has {segment.modality} and the template no {segment.modality} part",
                f"add '{segment.modality}' to prompt_mm",
            )
        part = skeleton.part(segment.modality, segment.value, {segment.modality, "mm_url", column}, columns)
        if part is None:
            raise TemplateError(
                f"{segment.modality} that no slot of the template receives",
                f"write {{{segment.modality}}} as its source",
            )
        return Keyed(key, part)

    def _from_columns(
        self, entry: Entry, keys: list[str] | tuple[str, ...], columns: Mapping[str, object], examples: str
    ) -> Iterator[Keyed]:
        """Give the parts that plain columns fill, in the order of ``keys``."""
        for key in keys:
            if key == "text":
                if self._text is not None and (text := filled(self._text.text, columns, examples, self._place)):
                    yield Keyed(key, self._text.part(text))
                continue
            for part in self._media[key].from_columns(columns, list_cells=entry.list_cells):
                yield Keyed(key, part)


def own_slots(columns: Any) -> set[str]:
    """Return the slots that read as a text segment of these columns: their own, and ``question`` for ``content``."""
    own = set(columns)
    return own | {"question"} if CONTENT in own else own


def _around(text: SlotText, own: set[str], first: bool, last: bool) -> SlotText:
    """Return the text with what surrounds the slot only at the first and at the last segment."""
    at = [i for i, p in enumerate(text.pieces) if isinstance(p, Slot) and p.column in own]
    return SlotText(text.pieces[None if first else at[0] : None if last else at[-1] + 1])
