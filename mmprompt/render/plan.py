"""A plan: rows of one shape differ only in values, so all that they have in common is made once.

The long way through templates and writers is the only truth. It is walked with a mark in the place of each value of a
row, and its JSON, split at the marks, is the plan of that shape. Each further row is checked against the plan and
filled in. A row that fits no plan goes the long way. So does a row with an error, because the long way knows its place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Union

import orjson

from mmprompt.errors import MMPromptError
from mmprompt.media.sources import classify_or_path
from mmprompt.media.urls import is_plain_url
from mmprompt.messages import MediaPart, MediaRef
from mmprompt.render.shapes import Shape, Unplannable, address_of
from mmprompt.render.wire_request import WireRequest
from mmprompt.targets.wire_json import EncodedJSON, Payload, keyed, with_holes

if TYPE_CHECKING:
    from mmprompt.render.builder import RequestBuilder


_MOST_MISSES = 64
"""After how many rows that name files, and none between them that does not, a plan expects no others."""


class _Medium(NamedTuple):
    """The place of a content part with a medium.

    ``source`` is the index of its source among the values, None if all rows have the medium. ``before`` and ``after``
    stand around the address of a medium that goes by its URL, unless the target ``reads_addresses`` (Gemini takes the
    media type from the suffix).
    """

    number: int
    source: int | None
    ref: MediaRef
    before: bytes
    after: bytes
    reads_addresses: bool

    def named(self, address: str) -> bytes:
        """Return the content part of the medium with this address."""
        return self.before + orjson.dumps(address) + self.after


class _Kept(NamedTuple):
    """A medium of all rows, as it was sent last."""

    part: MediaPart
    text: bytes
    payloads: list[Payload]


class _Direct(NamedTuple):
    """Fills rows of texts and plain URLs: a match of the row as JSON, a format of ``%``, and the groups in it."""

    match: Callable[[bytes], re.Match[bytes] | None]
    form: bytes
    groups: tuple[int, ...]

    def filled(self, joined: str) -> bytes | None:
        """Return the JSON for the columns of a row as one text; None if they do not match."""
        try:
            match = self.match(orjson.dumps(joined))
            return None if match is None else self.form % match.group(*self.groups)
        except (TypeError, MemoryError):  # a lone surrogate; a row of many megabytes
            return None


_Place = Union[int, _Medium]


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
        self._kept: dict[int, _Kept] = {}
        marks = shape.marks()
        media = [_medium(builder, number, ref, marks) for number, ref in enumerate(refs)]
        self._is_keyed = isinstance(marked.wire, dict)
        self._texts = [(key, *_split(orjson.dumps(v), marks, media)) for key, v in keyed(marked.wire).items()]
        if sorted(p.number for *_, places in self._texts for p in places if type(p) is _Medium) != [*range(len(refs))]:
            raise Unplannable
        self.sources = frozenset([medium.source for medium in media if medium.source is not None])
        self._simple = all(medium.source is not None and not medium.reads_addresses for medium in media)
        self._direct = self._direct_format()
        self._misses = 0
        self._line = self._line_format(builder.task.output_column)

    def _direct_format(self) -> _Direct | None:
        """Return what fills rows of plain texts and URLs at once: a match, a format of ``%`` and the groups in it.

        None if the plan has no such rows.
        """
        schemes = self._builder.sent_schemes
        if self._is_keyed or self._most is not None or not self._simple or (self.sources and not schemes):
            return None
        ((_, text, places),) = self._texts
        named = [p if type(p) is _Medium else None for p in places]
        pieces = [b"%b" if p is None else b'%b"%%b"%b' % (_doubled(p.before), _doubled(p.after)) for p in named]
        groups = [place.source or 0 if isinstance(place, _Medium) else place for place in places]
        if not groups:  # all rows have the same request
            return None
        form = text.replace(b"%%", b"%%%%") % tuple(pieces)  # it stays a format
        return _Direct(self.shape.direct(self.sources, schemes).match, form, tuple([group + 1 for group in groups]))

    def _line_format(self, answer: str) -> _Direct | None:
        """Return what fills a whole line of ``--emit messages`` at once; None if the plan has no such lines."""
        direct, whole = self._direct, self.shape.whole_texts
        if direct is None or self.dropped or "id" not in whole or (answer not in whole and answer in self.shape.names):
            return None
        end, groups = b"}\n", (whole["id"] + 1, *direct.groups)
        if answer in whole:
            end, groups = b',"answer":"%b"}\n', (*groups, whole[answer] + 1)
        return _Direct(direct.match, b'{"id":"%b","messages":' + direct.form + end, groups)

    def line(self, columns: Mapping[str, object]) -> bytes | None:
        """Return the line of a row of texts and URLs, as ``--emit messages`` writes it; None for all other rows."""
        if self._line is None or (joined := self.shape.joined(columns)) is None:
            return None
        return self._filled_at_once(self._line, joined)

    def _filled_at_once(self, form: _Direct | None, joined: str) -> bytes | None:
        """Return what ``form`` makes of a row; it is given up where no row was of texts and URLs."""
        text = None if form is None else form.filled(joined)
        if text is not None:
            self._misses = 0
        elif form is not None:
            self._misses += 1
            if self._misses == _MOST_MISSES:
                self._direct = self._line = None
        return text

    def wire(self, columns: Mapping[str, object]) -> Any:
        """Return the wire form of a row; None if it has to go the long way, False if it is of another shape."""
        joined = self.shape.joined(columns)
        if joined is None:
            return False
        if (text := self._filled_at_once(self._direct, joined)) is not None:
            return EncodedJSON(text, [])
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
                    if not isinstance(place, _Medium):
                        pieces.append(orjson.dumps(values[place])[1:-1])
                    elif named:
                        pieces.append(place.named(address_of(place.number)))
                    elif (piece := self._content_part(place, values, read, payloads)) is not None:
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

    def _content_part(
        self, place: _Medium, values: Sequence[str], read: Callable[[MediaRef], Any], payloads: list[Payload]
    ) -> bytes | None:
        """Return the JSON of a medium's content part, and add its bytes to ``payloads``; None as ``filled``."""
        ref = place.ref
        if place.source is not None:
            source = values[place.source]
            plain = not place.reads_addresses and source.startswith(self._builder.url_prefixes) and is_plain_url(source)
            if plain:
                return place.named(source)
            if classify_or_path(source) == "base64":  # a template gives it the form of a data URI
                return None
            ref = ref._replace(source=source)
        part = read(ref)
        of_all = place.source is None and type(part) is MediaPart
        kept = self._kept.get(place.number) if of_all else None
        if kept is not None and kept.part is part:
            payloads += kept.payloads
            return kept.text
        if type(part) is MediaPart and part.frames:
            return None
        own: list[Payload] = []
        text = with_holes(self._builder.writer.medium(part), own)
        if of_all and self._builder.plans.has_room(_kept_bytes(part) - (_kept_bytes(kept.part) if kept else 0)):
            own = [payload.encoded() for payload in own]
            self._kept[place.number] = _Kept(part, text, own)
        payloads += own
        return text


def _kept_bytes(part: MediaPart) -> int:
    """Return about how many bytes a medium takes with its base64."""
    return len(part.data) * 7 // 3


def _medium(builder: RequestBuilder, number: int, ref: MediaRef, marks: Sequence[str]) -> _Medium:
    """Return the place of a medium of a marked request."""
    source = marks.index(ref.source) if ref.source in marks else None
    if source is None and any(mark in str(ref.source) for mark in marks):
        raise Unplannable
    address = address_of(number)
    named, other = [
        orjson.dumps(builder.writer.medium(ref._replace(source=name, name=name)))
        for name in (address, address + ".jpg")
    ]
    before, found, after = named.partition(orjson.dumps(address))
    if not found:
        raise Unplannable
    return _Medium(number, source, ref, before, after, other != before + orjson.dumps(address + ".jpg") + after)


def _split(text: bytes, marks: Sequence[str], media: Sequence[_Medium]) -> tuple[bytes, list[_Place]]:
    """Return a JSON text as a format of ``%``, and what stands in its places, in order."""
    found: dict[bytes, _Place] = {mark.encode(): number for number, mark in enumerate(marks)}
    found.update({medium.named(address_of(medium.number)): medium for medium in media})
    every = sorted(found, key=len, reverse=True)
    pieces = re.split(b"(" + b"|".join(map(re.escape, every)) + b")", text) if every else [text]
    return b"%b".join(map(_doubled, pieces[::2])), [found[piece] for piece in pieces[1::2]]


def _doubled(text: bytes) -> bytes:
    """Return text that a format of ``%`` gives as it is."""
    return text.replace(b"%", b"%%")
