"""What a role says as content parts, compiled once: ``prompt_mm``, or the list of parts of a message."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from mmprompt.datasets.media_columns import holds_no_medium, parts_of_value
from mmprompt.errors import MMPromptError, TemplateError, nearest
from mmprompt.messages import MODALITIES
from mmprompt.segments import Segment, begins_tagged
from mmprompt.templates.jinja_text import JinjaText, Text, slot_columns
from mmprompt.templates.part_skeleton import MediaSkeleton, PartDict, Skeletons, TextSkeleton
from mmprompt.templates.role_text import Content, Examples, parts_with_examples
from mmprompt.templates.sample_view import CONTENT, SampleView
from mmprompt.templates.slots import Slot, slot_text

Tagged = Mapping[str, Sequence[Segment]]
"""The tagged columns that feed an item, with their segments"""

Made = Mapping[str, list[PartDict]]
"""The list that takes the finished parts, for each key; one list for all keys keeps the order of the sample"""


class PartsOptions(NamedTuple):
    """How parts are made of a sample: the arguments of ``MMPromptTemplate``.

    ``is_list``: the parts are those of a list. A list takes a column as tagged only if the column holds tags or parts;
    without such a column it keeps texts that are empty.
    """

    column: str | None = None
    by_key: bool = False
    repeat_text: bool = True
    is_list: bool = False


class PartsContent:
    """Content parts with slots.

    Tagged columns give one part for each segment, in the order of the sample. Without them each skeleton is filled
    from plain columns, a medium once for each element of a list.
    """

    __slots__ = (
        "_keys",
        "_media",
        "_options",
        "_place",
        "_skeletons",
        "_text",
        "_twice",
        "has_marker",
        "media_names",
        "names",
        "text_names",
    )  # fmt: skip

    def __init__(self, skeletons: Skeletons, place: str, options: PartsOptions) -> None:
        self._skeletons = skeletons
        self._place = place
        self._options = options
        self._keys = tuple(dict.fromkeys(key for key, _ in skeletons))
        self._twice = next((key for at, (key, _) in enumerate(skeletons) if key in dict(skeletons[:at])), None)
        self._text = next((s for _, s in skeletons if isinstance(s, TextSkeleton)), None)
        self._media = {key: s for key, s in skeletons if isinstance(s, MediaSkeleton)}
        self.names = tuple(dict.fromkeys(name for _, skeleton in skeletons for name in skeleton.text.columns))
        texts = [skeleton.text for _, skeleton in skeletons if isinstance(skeleton, TextSkeleton)]
        self.text_names = tuple(dict.fromkeys(name for text in texts for name in slot_columns(text)))
        media = [skeleton for _, skeleton in skeletons if isinstance(skeleton, MediaSkeleton)]
        self.media_names = tuple(dict.fromkeys(name for skeleton in media for name in skeleton.text.columns))
        self.has_marker = self._text is not None and self._text.text.has_marker

    def render(self, view: SampleView, examples: Examples) -> Content:
        """Return the content parts for a sample; ``examples`` go where the first text has its marker.

        Raises:
            TemplateError: no skeleton or slot receives a segment, or the sample gives no part.
            MMPromptError: the tags or a source of the sample are wrong; ``where.column`` names the column.
        """
        whole: list[PartDict] = []
        made: Made = {key: [] if self._options.by_key else whole for key in self._keys}
        tagged = self._tagged(view)
        try:
            if tagged:
                self._add_segments(view, tagged, examples, made)
            else:
                self._add_columns(self._skeletons, view, view.columns, examples, made)
        except MMPromptError as error:
            raise error.located(template=self._place) from None
        parts = [part for key in self._keys for part in made[key]] if self._options.by_key else whole
        if not parts:
            column = ", ".join(tagged or self.names or (CONTENT,))
            what = f"the sample gives no content part: nothing to send in column {column}"
            hint = "fill it, or drop the row"
            raise TemplateError(what, hint).located(template=self._place, column=next(iter(tagged), None))
        return parts

    def _tagged(self, view: SampleView) -> Tagged:
        """Return the tagged columns that feed this item."""
        column = self._options.column
        if column is not None:
            if column not in view.raw:
                what = f"the sample has no column '{column}'"
                raise TemplateError(what, nearest(column, view.raw), code="MM603").located(template=self._place)
            return _with_content({column: view.segments(column) or []})
        if self._options.is_list:
            found = next((c for c in (*self.names, CONTENT) if _holds_parts(view, c)), None)
            if found is None:
                return {}
            if self._twice is not None:
                what = f"column '{found}' is tagged and the message has several {self._twice} parts"
                hint = "give one part per modality, which takes all segments of it"
                raise TemplateError(what, hint).located(template=self._place, column=found)
        named = {n: segments for n in self.names if n in view.raw and (segments := view.segments(n)) is not None}
        if not named and not self._fed_beside_content(view) and (content := view.segments(CONTENT)) is not None:
            named[CONTENT] = content
        return _with_content(named)

    def _fed_beside_content(self, view: SampleView) -> bool:
        """Return True if ``content`` is null and other columns fill the slots: rows of several kinds in one table."""
        if view.raw.get(CONTENT, "") is not None:
            return False
        return any(view.raw.get(name) is not None for name in self.names if name != CONTENT)

    def _add_segments(self, view: SampleView, tagged: Tagged, examples: Examples, made: Made) -> None:
        """Add one part for each segment, in order, and the parts of media that plain columns fill."""
        all_own = own_slots(tagged)
        columns = {**view.columns, **dict.fromkeys(all_own, "")}
        self._check_shadowed(view, tagged)
        early, late = self._without_segments(tagged)
        self._add_columns(early, view, columns, None, made)
        last = 0 if self._options.repeat_text else sum(s.modality == "text" for each in tagged.values() for s in each)
        number = 0
        for column, segments in tagged.items():
            own = own_slots([column])
            for segment in segments:
                try:
                    if segment.modality == "text":
                        number += 1
                        skeleton, text = self._text_for(own, first=number == 1, last=number == last)
                        own_columns = {**columns, **dict.fromkeys(own, segment.value)}
                        self._add_filled(skeleton, text, own_columns, examples if number == 1 else None, made)
                    else:
                        self._add_medium(column, segment, columns, made)
                except MMPromptError as error:
                    raise error.located(column=column, offset=view.offset(column, segment)) from None
        self._add_columns(late, view, columns, None, made)
        alone = self._text
        if number == 0 and alone is not None and not alone.is_only(all_own) and any(made.values()):
            self._add_filled(alone, alone.text, columns, examples, made)

    def _check_shadowed(self, view: SampleView, tagged: Tagged) -> None:
        """Refuse media in a column that only its text made a tagged one, beside a plain column of that medium.

        A question could otherwise put its own picture in the place of the row's.
        """
        for column, segments in tagged.items():
            if view.tagged_by_rule(column):
                continue
            for modality in {s.modality for s in segments} & set(self._media):
                plain = [c for c in self._media[modality].text.columns if c not in tagged]
                other = next((c for c in plain if not holds_no_medium(view.raw.get(c))), None)
                if other is not None:
                    what = f"{modality} in the text of column '{column}', beside the column '{other}'"
                    hint = f"name it in reader_cfg.tagged_columns if it is tagged, or remove column '{other}'"
                    raise TemplateError(what, hint).located(column=column)

    def _without_segments(self, tagged: Tagged) -> tuple[Skeletons, Skeletons]:
        """Return the media skeletons that no segment feeds: those before the text, and those after it."""
        fed = {s.modality for segments in tagged.values() for s in segments}
        if fed & {*MODALITIES}:
            fed.add("mm_url")
        before: list[tuple[str, TextSkeleton | MediaSkeleton]] = []
        after: list[tuple[str, TextSkeleton | MediaSkeleton]] = []
        unfed = before
        for key, skeleton in self._skeletons:
            if key == "text":
                unfed = after
            elif key not in fed:
                unfed.append((key, skeleton))
        return before, after

    def _text_for(self, own: set[str], *, first: bool, last: bool) -> tuple[TextSkeleton, Text]:
        """Return the part for a text segment that fills the slots ``own``, and the text of that part."""
        if self._text is None:
            raise TemplateError(
                "the sample has text and the template no text part", "add 'text' to prompt_mm", code="MM605"
            )
        text = self._text.text
        if own.isdisjoint(text.columns):
            slot = "question" if CONTENT in own else next(iter(own))
            what = "a text segment that no slot of the template receives"
            raise TemplateError(what, f"write {{{slot}}} in the text part", code="MM605")
        return self._text, text if self._options.repeat_text else _around_slot(text, own, first=first, last=last)

    def _add_filled(
        self, skeleton: TextSkeleton, text: Text, columns: Mapping[str, object], examples: Examples, made: Made
    ) -> None:
        """Add the part that says ``text``; with dialogue examples at its marker the parts around and of them."""
        if isinstance(examples, list) and text.has_marker:
            for part in parts_with_examples(text.around_examples(columns), examples):
                plain = part.get("type") == "text"
                made["text"].append(skeleton.part(str(part["text"]), columns) if plain else part)
            return
        filled = text.fill(columns, None, examples if isinstance(examples, str) else "")
        if filled:
            made["text"].append(skeleton.part(filled, columns))

    def _add_medium(self, column: str, segment: Segment, columns: Mapping[str, object], made: Made) -> None:
        modality = segment.modality
        key = modality if modality in self._media else "mm_url"
        skeleton = self._media.get(key)
        if skeleton is None:
            what = f"the sample has {modality} and the template no {modality} part"
            raise TemplateError(what, f"add '{modality}' to prompt_mm", code="MM605")
        part = skeleton.part(modality, segment.value, {modality, "mm_url", column}, columns)
        if part is None:
            what = f"{modality} that no slot of the template receives"
            raise TemplateError(what, f"write {{{modality}}} as its source", code="MM605")
        made[key].append(part)

    def _add_columns(
        self, skeletons: Skeletons, view: SampleView, columns: Mapping[str, object], examples: Examples, made: Made
    ) -> None:
        """Add the parts that plain columns fill, in the order of the skeletons."""
        for key, skeleton in skeletons:
            if isinstance(skeleton, MediaSkeleton):
                made[key].extend(skeleton.from_columns(view, columns))
            elif self._options.is_list:
                made[key].append(skeleton.part(skeleton.text.fill(columns), columns))
            else:
                self._add_filled(skeleton, skeleton.text, columns, examples, made)


def _holds_parts(view: SampleView, column: str) -> bool:
    """Return True if a column holds more than plain text or one medium: tags, or a list of parts."""
    if column not in view.raw or column == view.hidden:
        return False
    value = view.raw[column]
    if not isinstance(value, str):
        return parts_of_value(value, media=False) is not None
    if column != CONTENT and not begins_tagged(value) and column not in (view.tagged or ()):
        return False
    segments = view.segments(column)
    return segments is not None and [s.value for s in segments] != [value]


def own_slots(columns: Collection[str]) -> set[str]:
    """Return the slots that a text segment of these columns fills: their own, and ``question`` for ``content``."""
    own = set(columns)
    return own | {"question"} if CONTENT in own else own


def _with_content(tagged: Tagged) -> Tagged:
    """Return tagged columns without their empty segments."""
    return {c: [s for s in segments if not isinstance(s.value, str) or s.value] for c, segments in tagged.items()}


def _around_slot(text: Text, own: set[str], *, first: bool, last: bool) -> Text:
    """Return the text with what surrounds the slot only at the first and at the last segment."""
    if isinstance(text, JinjaText):
        return text
    at = [i for i, p in enumerate(text.pieces) if isinstance(p, Slot) and p.column in own]
    return slot_text(text.pieces[None if first else at[0] : None if last else at[-1] + 1])
