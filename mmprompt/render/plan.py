"""A plan: rows of one shape differ only in values, so all that they have in common is made once.

The long way through templates and writers is the only truth. It is walked with a mark in the place of each value of a
row, and its JSON, split at the marks, is the plan of that shape. Each further row is checked against the plan and
filled in. A row that fits no plan goes the long way. So does a row with an error, because the long way knows its place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Union

import orjson

from mmprompt.datasets.line_columns import AroundFile, LineShape
from mmprompt.errors import MMPromptError
from mmprompt.messages import MediaRef
from mmprompt.render.medium_place import LONGEST_PATH, KnownFile, MediumPlace
from mmprompt.render.wire_request import WireRequest
from mmprompt.targets.wire_json import EncodedJSON, Payload, keyed
from mmprompt.tasks.shapes import Shape, Unplannable, address_of

if TYPE_CHECKING:
    from mmprompt.render.builder import RequestBuilder


_new = tuple.__new__  # half the time of the class, and this runs for every row
_MOST_MISSES = 64
"""After how many rows that name files, and none between them that does not, a plan expects no others."""

LONGEST_MATCHED = 1 << 16
"""Bytes of a row as JSON. A match of a longer one would take much memory: it notes each escape."""


class Form:
    """Fills rows at once whose media are all named alike: a match of the row as JSON, a format of ``%``, its groups.

    Args:
        plan: the plan of these rows.
        pattern: matches the row as JSON.
        form: the format.
        groups: the groups of the match that stand in the places of the format.
        media: the places among the groups where a file stands.

    ``named`` is the place of the id among all groups.
    """

    __slots__ = ("_chosen", "_known", "form", "groups", "match", "media", "misses", "named", "pattern", "plan")

    def __init__(
        self,
        plan: Plan,
        pattern: re.Pattern[bytes],
        form: bytes,
        groups: Sequence[int],
        media: Sequence[tuple[int, MediumPlace]] = (),
    ) -> None:
        self.plan = plan
        self.pattern = pattern
        self.match = pattern.match
        self.form = form
        self.groups = tuple(groups)
        in_order = self.groups == (*range(1, pattern.groups + 1),)
        self._chosen = None if in_order else itemgetter(*[group - 1 for group in groups])
        self.named = plan.texts.get("id", 0) - 1
        self.media = media
        self.misses = 0
        self._known: dict[bytes, KnownFile] = {}

    def around(self, values: tuple[bytes, ...]) -> AroundFile | None:
        """Return what is sent for a row whose match has these groups, but for its file; None if that is not known.

        The form is that of a whole line: it has at least two groups, the id and the path, so they come as a tuple.
        """
        if len(self.media) != 1:
            return None
        ((at, _),) = self.media
        chosen = values if self._chosen is None else self._chosen(values)
        path = chosen[at]
        known = self._known.get(path[path.rfind(b".") :]) if len(path) <= LONGEST_PATH else None
        if known is None and (known := self._know(path)) is None:
            return None
        is_kind, before, after = known
        return path.decode(), is_kind, before % chosen[:at], after % chosen[at + 1 :]

    def _know(self, path: bytes) -> KnownFile | None:
        """Return what is known of files named like this one, with formats of all that stands around their base64."""
        ((at, place),) = self.media
        if (known := place.known_file(path.decode())) is None:
            return None
        is_kind, begin, end = known
        hole = [found for found in re.finditer(b"%[%b]", self.form) if found[0] == b"%b"][at]
        formats = is_kind, self.form[: hole.start()] + _doubled(begin), _doubled(end) + self.form[hole.end() :]
        self._known[path[path.rfind(b".") :]] = formats
        return formats

    def forget_file(self, path: str) -> None:
        """Let ``around`` know nothing of files named like this one any more: they are of several kinds."""
        self.media[0][1].forget_file(path)
        self._known.pop(path[path.rfind(".") :].encode(), None)

    def filled(self, values: tuple[bytes, ...], payloads: list[Payload]) -> bytes | None:
        """Return the JSON of a row whose match has these groups; its media are read and added to ``payloads``.

        None if the row has to go the long way. So has one whose media have too many bytes together.
        """
        try:
            chosen = values if self._chosen is None else self._chosen(values)
            if not self.media:
                return self.form % chosen
            pieces = [chosen] if type(chosen) is bytes else [*chosen]
            most = self.plan.most_media_bytes
            for at, place in self.media:
                if (piece := place.of_file(pieces[at].decode(), payloads)) is None:
                    return None
                pieces[at] = piece
                most -= len(payloads[-1].part.data)
                if most < 0:
                    return None
            return self.form % tuple(pieces)
        except (MMPromptError, MemoryError):  # the long way knows the place
            return None


_Place = Union[int, MediumPlace]


class Plan:
    """What the requests of the rows of one shape have in common.

    Args:
        builder: reads and writes the media.
        shape: what the rows have in common.
        marked: the request with the shape's marks in the place of values.
        refs: its media, in order; their content parts name them by ``address_of``.

    Raises:
        Unplannable: a mark or a medium stands where no value can be put.
    """

    def __init__(self, builder: RequestBuilder, shape: Shape, marked: WireRequest, refs: Sequence[MediaRef]) -> None:
        self.proofs = 0
        self.marked = marked
        _, self.turn, _, self.dropped = marked
        self.shape = shape
        self._builder = builder
        self._counted = len(refs) > builder.few
        self._most = builder.writer.request_bytes
        self.most_media_bytes = builder.request_bytes
        marks = shape.marks()
        media = [MediumPlace(builder, number, ref, marks) for number, ref in enumerate(refs)]
        self._is_keyed = isinstance(marked.wire, dict)
        self._texts = [(key, *_split(orjson.dumps(v), marks, media)) for key, v in keyed(marked.wire).items()]
        if sorted(p.number for *_, places in self._texts for p in places if not isinstance(p, int)) != [
            *range(len(refs))
        ]:
            raise Unplannable
        self.media = media
        self.sources = frozenset([place.source for place in media if place.source is not None])
        self.texts = {name: number + 1 for name, number in shape.whole_texts.items()}
        self.line_shape = LineShape(shape.names, self.texts)
        self.wires = self._forms()
        self.lines = self._line_forms(builder.task.output_column)

    def _forms(self) -> list[Form]:
        """Return what fills rows at once whose media all are plain URLs, or all are files."""
        of_rows = all(place.source is not None for place in self.media)
        if self._is_keyed or self._most is not None or not of_rows:
            return []
        ((_, text, places),) = self._texts
        groups = [1 + ((place.source or 0) if isinstance(place, MediumPlace) else place) for place in places]
        if not groups:  # all rows have the same request
            return []
        forms = []
        schemes = self._builder.sent_schemes
        if not self.sources or (schemes and not any(place.reads_addresses for place in self.media)):
            pieces = [
                b"%b" if isinstance(p, int) else b'%b"%%b"%b' % (_doubled(p.before), _doubled(p.after)) for p in places
            ]
            form = text.replace(b"%%", b"%%%%") % tuple(pieces)  # it stays a format
            forms.append(Form(self, self.shape.with_urls(self.sources, schemes), form, groups))
        if self.sources and all(place.takes_files for place in self.media):
            media = [(at, place) for at, place in enumerate(places) if isinstance(place, MediumPlace)]
            forms.append(Form(self, self.shape.with_paths(self.sources), text, groups, media))
        return forms

    def _line_forms(self, answer: str) -> list[Form]:
        """Return what fills whole lines of ``--emit messages`` at once."""
        whole = self.texts
        if self.dropped or "id" not in whole or (answer not in whole and answer in self.shape.names):
            return []
        begin, end, last = b'{"id":"%b","messages":', b"}\n", []
        if answer in whole:
            end, last = b',"answer":"%b"}\n', [whole[answer]]
        return [
            Form(
                self,
                form.pattern,
                begin + form.form + end,
                [whole["id"], *form.groups, *last],
                [(at + 1, place) for at, place in form.media],
            )
            for form in self.wires
        ]

    def prefer_form_of(self, columns: Mapping[str, object]) -> None:
        """Let the form that takes a row like this one be tried first."""
        text = self.shape.as_json(columns)
        if text is not None and len(text) <= LONGEST_MATCHED:
            for forms in self.wires, self.lines:
                forms.sort(key=lambda form: form.match(text) is None)

    def at_once(self, forms: list[Form], columns: Mapping[str, object], payloads: list[Payload]) -> bytes | None:
        """Return what one of ``forms`` makes of a row, and add its media to ``payloads``; None if it goes another way.

        A form that row after row does not match is given up.
        """
        text = self.shape.as_json(columns) if forms else None
        if text is None or len(text) > LONGEST_MATCHED:
            return None
        for form in forms:
            match = form.match(text)
            if match is not None:
                form.misses = 0
                return form.filled(match.groups(), payloads)
            form.misses += 1
            if form.misses == _MOST_MISSES:
                forms[:] = [other for other in forms if other is not form]
        return None

    def wire(self, columns: Mapping[str, object]) -> Any:
        """Return the wire form of a row; None if it has to go the long way, False if it is of another shape."""
        payloads: list[Payload] = []
        if (text := self.at_once(self.wires, columns, payloads)) is not None:
            return EncodedJSON(text, payloads)
        values = self.shape.values(columns)
        return False if values is None else self.filled(values)

    def filled(self, values: Sequence[str], *, named: bool = False) -> Any:
        """Return the wire form for the values of a row; None if the row has to go the long way.

        With ``named`` the media go by ``address_of``, as in the walk that made the plan.
        """
        request = self._builder.request_reader() if self._counted and not named else None
        read = self._builder.media.reading if request is None else request.read
        wire = {}
        size = 0
        try:
            for key, text, places in self._texts:
                payloads: list[Payload] = []
                pieces: list[bytes] = []
                for place in places:
                    if isinstance(place, int):
                        pieces.append(orjson.dumps(values[place])[1:-1])
                    elif named:
                        pieces.append(place.named(address_of(place.number)))
                    elif (piece := place.content_part(values, read, payloads)) is not None:
                        pieces.append(piece)
                    else:
                        return None
                filled = text % tuple(pieces)
                size += len(filled) + sum([payload.size for payload in payloads])
                wire[key] = EncodedJSON(filled, payloads)
        except (MMPromptError, MemoryError, TypeError):
            return None
        if self._most is not None and size > self._most:
            return None
        if request is not None:
            self._builder.keep(request)
        return wire if self._is_keyed else wire["messages"]

    @property
    def kept_bytes(self) -> int:
        """About how many bytes of media are kept."""
        return sum([place.kept_bytes for place in self.media])


def _split(text: bytes, marks: Sequence[str], media: Sequence[MediumPlace]) -> tuple[bytes, list[_Place]]:
    """Return a JSON text as a format of ``%``, and what stands in its places, in order."""
    found: dict[bytes, _Place] = {mark.encode(): number for number, mark in enumerate(marks)}
    found.update({medium.named(address_of(medium.number)): medium for medium in media})
    every = sorted(found, key=len, reverse=True)
    pieces = re.split(b"(" + b"|".join(map(re.escape, every)) + b")", text) if every else [text]
    return b"%b".join(map(_doubled, pieces[::2])), [found[piece] for piece in pieces[1::2]]


def _doubled(text: bytes) -> bytes:
    """Return text that a format of ``%`` gives as it is."""
    return text.replace(b"%", b"%%")
