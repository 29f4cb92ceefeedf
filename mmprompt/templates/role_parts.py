"""One ``prompt_mm``: its skeletons compiled, and the content parts they give for a sample."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from mmprompt.errors import MMPromptError, TemplateError, nearest, shown
from mmprompt.messages import MODALITIES
from mmprompt.segments import Segment
from mmprompt.templates.part_skeleton import MediaSkeleton, TextSkeleton, compile_media, compile_text_skeleton
from mmprompt.templates.role_text import Examples, Tokens, around_marker, filled, parts_with_examples
from mmprompt.templates.sample_view import CONTENT, SampleView
from mmprompt.templates.slots import Slot, SlotText, slot_text

KEYS = ("text", *MODALITIES, "mm_url")

Fed = tuple[str, Segment]
"""a column and a segment of it"""


class Keyed(NamedTuple):
    """A part and the key of ``prompt_mm`` that made it."""

    key: str
    part: dict[str, Any]


class ContentItem:
    """What a role of a multimodal template says: content parts."""

    __slots__ = ("_by_key", "_column", "_keys", "_media", "_place", "_repeat", "_text", "has_marker", "names")

    def __init__(
        self, prompt_mm: object, tokens: Tokens, place: str, *, column: str | None, by_key: bool, repeat_text: bool
    ) -> None:
        if not isinstance(prompt_mm, Mapping) or not prompt_mm:
            what = "prompt_mm is no dict of modality to content part"
            raise TemplateError(what, "see MMPromptTemplate").located(template=place)
        self._place = place
        self._column = column
        self._by_key = by_key
        self._repeat = repeat_text
        self._keys = tuple(prompt_mm)
        self._text: TextSkeleton | None = None
        self._media: dict[str, MediaSkeleton] = {}
        names: dict[str, None] = {}
        for key, skeleton in prompt_mm.items():
            if key not in KEYS:
                what = f"unknown modality {shown(key)} in prompt_mm"
                raise TemplateError(what, nearest(key, KEYS)).located(template=place)
            if key == "text":
                self._text = compile_text_skeleton(skeleton, tokens, f"{place}['text']")
                names.update(dict.fromkeys(self._text.text.columns))
            else:
                self._media[key] = compile_media(key, skeleton, tokens, f"{place}['{key}']")
                names.update(dict.fromkeys(self._media[key].columns))
        self.names = tuple(names)
        self.has_marker = self._text is not None and self._text.text.has_marker

    def render(self, entry: SampleView, examples: Examples) -> list[dict[str, Any]]:
        """Return the content parts for ``entry``; ``examples`` go where the first text has its marker.

        Raises:
            TemplateError: a segment that no skeleton or slot receives, or a sample that gives no part at all.
            MMPromptError: the tags or a source of the sample are at fault; ``where.column`` says where.
        """
        tagged = self._tagged(entry)
        if tagged:
            parts = list(self._from_segments(entry, tagged, examples))
        else:
            parts = list(self._from_columns(entry, self._keys, entry.columns, examples))
        if not parts:
            column = ", ".join(tagged or self.names or (CONTENT,))
            what = f"the sample gives no content part: nothing to send in column {column}"
            hint = "fill it, or drop the row"
            raise TemplateError(what, hint).located(template=self._place, column=next(iter(tagged), None))
        if self._by_key:
            parts.sort(key=lambda keyed: self._keys.index(keyed.key))
        return [keyed.part for keyed in parts]

    def _tagged(self, entry: SampleView) -> dict[str, list[Segment]]:
        """Return the tagged columns that feed this item, with their segments."""
        if self._column is not None:
            if self._column not in entry.columns:
                what = f"the sample has no column '{self._column}'"
                raise TemplateError(what, nearest(self._column, entry.columns)).located(template=self._place)
            return {self._column: entry.segments(self._column) or []}
        named = {name: segments for name in self.names if (segments := entry.segments(name)) is not None}
        if not named and (content := entry.segments(CONTENT)) is not None:
            return {CONTENT: content}
        return named

    def _from_segments(
        self, entry: SampleView, tagged: Mapping[str, list[Segment]], examples: Examples
    ) -> Iterator[Keyed]:
        """Give one part a segment, in order, and beside them the parts of media that plain columns fill."""
        columns = {**entry.columns, **dict.fromkeys(own_slots(tagged), "")}
        self._check_shadowed(entry, tagged)
        fed: list[Fed] = [(c, s) for c, segments in tagged.items() for s in segments if not _is_empty(s)]
        early, late = self._plain_keys({s.modality for _, s in fed})
        before = list(self._from_columns(entry, early, columns, None))
        yield from before
        last = sum(s.modality == "text" for _, s in fed) - 1
        number = 0
        for column, segment in fed:
            try:
                if segment.modality == "text":
                    ends = (number == 0, number == last)
                    yield from self._text_parts(column, segment, columns, ends, examples if number == 0 else None)
                    number += 1
                else:
                    yield self._media_part(column, segment, columns)
            except MMPromptError as error:
                offset = entry.offset(column, segment)
                raise error.located(column=column, offset=offset, template=self._place) from None
        after = list(self._from_columns(entry, late, columns, None))
        yield from after
        if number == 0 and (fed or before or after) and self._says_more_than(tagged):
            yield from self._from_columns(entry, ["text"], columns, examples)

    def _check_shadowed(self, entry: SampleView, tagged: Mapping[str, list[Segment]]) -> None:
        """Refuse media in a column that only its text made a tagged one, beside a plain column of that medium.

        A question could otherwise put its own picture in the place of the row's.

        Raises:
            TemplateError: there is such a pair.
        """
        for column, segments in tagged.items():
            if entry.tagged_by_rule(column):
                continue
            for modality in {s.modality for s in segments} & set(self._media):
                other = next((c for c in self._media[modality].columns if entry.raw.get(c) and c not in tagged), None)
                if other is not None:
                    what = f"{modality} in the text of column '{column}', beside the column '{other}'"
                    hint = f"name it in reader_cfg.tagged_columns if it is tagged, or remove column '{other}'"
                    raise TemplateError(what, hint).located(column=column, template=self._place)

    def _says_more_than(self, tagged: Collection[str]) -> bool:
        return self._text is not None and not self._text.is_only(own_slots(tagged))

    def _plain_keys(self, fed: set[str]) -> tuple[list[str], list[str]]:
        """Return the media keys that no segment feeds: those before the text key, and those after it."""
        keys = [k for k in self._media if k not in fed and not (k == "mm_url" and fed & set(MODALITIES))]
        at = self._keys.index("text") if self._text else len(self._keys)
        return [k for k in keys if self._keys.index(k) < at], [k for k in keys if self._keys.index(k) > at]

    def _text_parts(
        self,
        column: str,
        segment: Segment,
        columns: Mapping[str, object],
        ends: tuple[bool, bool],
        examples: Examples,
    ) -> Iterator[Keyed]:
        if self._text is None:
            raise TemplateError("the sample has text and the template no text part", "add 'text' to prompt_mm")
        own = own_slots([column])
        if not own & set(self._text.text.columns):
            slot = "question" if column == CONTENT else column
            what = "a text segment that no slot of the template receives"
            raise TemplateError(what, f"write {{{slot}}} in the text part")
        text = self._text.text if self._repeat else _around(self._text.text, own, *ends)
        yield from self._said(text, {**columns, **dict.fromkeys(own, segment.value)}, examples)

    def _said(self, text: SlotText, columns: Mapping[str, object], examples: Examples) -> Iterator[Keyed]:
        """Give the text part, or with dialogue examples at its marker the parts around and of them."""
        if self._text is None:
            return
        if isinstance(examples, list) and text.has_marker:
            said = parts_with_examples(around_marker(text, columns, self._place), examples)
            for part in said:
                plain = part.get("type") == "text"
                yield Keyed("text", self._text.part(part["text"], columns, self._place) if plain else part)
        elif filling := filled(text, columns, examples if isinstance(examples, str) else "", self._place):
            yield Keyed("text", self._text.part(filling, columns, self._place))

    def _media_part(self, column: str, segment: Segment, columns: Mapping[str, object]) -> Keyed:
        modality = segment.modality
        key = modality if modality in self._media else "mm_url"
        skeleton = self._media.get(key)
        if skeleton is None:
            what = f"the sample has {modality} and the template no {modality} part"
            raise TemplateError(what, f"add '{modality}' to prompt_mm")
        part = skeleton.part(modality, segment.value, {modality, "mm_url", column}, columns)
        if part is None:
            what = f"{modality} that no slot of the template receives"
            raise TemplateError(what, f"write {{{modality}}} as its source")
        return Keyed(key, part)

    def _from_columns(
        self, entry: SampleView, keys: Sequence[str], columns: Mapping[str, object], examples: Examples
    ) -> Iterator[Keyed]:
        """Give the parts that plain columns fill, in the order of ``keys``."""
        for key in keys:
            if key == "text":
                if self._text is not None:
                    yield from self._said(self._text.text, columns, examples)
                continue
            for part in self._media[key].from_columns(entry, columns):
                yield Keyed(key, part)


def own_slots(columns: Collection[str]) -> set[str]:
    """Return the slots that read as a text segment of these columns: their own, and ``question`` for ``content``."""
    own = set(columns)
    return own | {"question"} if CONTENT in own else own


def _is_empty(segment: Segment) -> bool:
    return isinstance(segment.value, str) and not segment.value


def _around(text: SlotText, own: set[str], first: bool, last: bool) -> SlotText:
    """Return the text with what surrounds the slot only at the first and at the last segment."""
    at = [i for i, p in enumerate(text.pieces) if isinstance(p, Slot) and p.column in own]
    return slot_text(text.pieces[None if first else at[0] : None if last else at[-1] + 1])
