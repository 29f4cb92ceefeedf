"""Content parts and messages: immutable values between a template and a wire form.

``MediaRef`` is what a sample *named*. ``MediaPart`` is what was *read*. They are different types because a string that
names a medium is not a permission to read it. Target writers refuse a ``MediaRef``, unless the target takes names.

All are named tuples: cheap to create by the million, picklable, and equal if their fields are.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, NamedTuple, TypeGuard, TypeVar, Union

from mmprompt.errors import PromptError, TargetError, shown
from mmprompt.errors.findings import Note

Pairs = tuple[tuple[str, object], ...]
"""Further keys of a content part and their values, in order."""

_SHOWN_PARTS = 10

MODALITIES = ("image", "audio", "video")
"""The kinds of media."""

ROLES = {"HUMAN": "user", "BOT": "assistant", "SYSTEM": "system"}
"""The roles of the prompt system and their names in messages. Other roles keep their names."""


class TextPart(NamedTuple):
    """A piece of text. ``extra`` holds further keys of its content part, such as ``cache_control``."""

    text: str
    extra: Pairs = ()

    def __repr__(self) -> str:
        """Show at most 80 characters of the text."""
        return f"TextPart({shown(self.text)})"


class MediaRef(NamedTuple):
    """Media that a sample names and nobody has read.

    ``source`` is a path, URL, data URI or bare base64 as written, or an object that holds the media (bytes, a PIL
    image, a Hugging Face struct). ``form`` is the content part type that the template asked for (``image_url``,
    ``input_audio``, …; empty: the target's own). ``options`` are keys beside the source (``detail``), ``extra`` keys
    of the part itself (``min_pixels``). ``name`` is what goes on the wire where the reader decided to send a name.
    """

    modality: str
    source: object
    form: str = ""
    options: Pairs = ()
    extra: Pairs = ()
    name: str | None = None

    def __repr__(self) -> str:
        """Show the modality and at most 80 characters of the source; of an object its type."""
        plain = isinstance(self.source, (str, bytes))
        return f"MediaRef({self.modality}, {shown(self.source) if plain else f'<{type(self.source).__name__}>'})"


class MediaPart(NamedTuple):
    """Media that was read under a policy: the user's bytes, unchanged unless ``changes`` says so.

    ``media_type`` was judged from the bytes. A video of single frames has type ``video/jpeg`` and its encoded frames
    in ``frames`` instead of ``data``. ``origin`` is the source in short, for messages; it takes no part in comparisons
    of the wire forms. ``changes`` lists the transformations made, each in words; ``findings`` what the reader noticed.
    """

    modality: str
    media_type: str
    data: bytes
    frames: tuple[bytes, ...] = ()
    form: str = ""
    options: Pairs = ()
    extra: Pairs = ()
    origin: str = ""
    changes: tuple[str, ...] = ()
    findings: tuple[Note, ...] = ()

    def __repr__(self) -> str:
        """Show the type, the size and the origin; never the bytes."""
        size = len(self.data) + sum(map(len, self.frames))
        frames = f", {len(self.frames)} frames" if self.frames else ""
        return f"MediaPart({self.media_type}, {size:,} bytes{frames}, {shown(self.origin)})"


Part = Union[TextPart, MediaRef, MediaPart]
PARTS = (TextPart, MediaRef, MediaPart)


class _MessageFields(NamedTuple):
    role: str
    parts: tuple[Part, ...]
    name: str | None
    tool_calls: tuple[object, ...]
    tool_call_id: str | None


class Message(_MessageFields):
    """One message: a role and its content parts.

    HUMAN, BOT and SYSTEM become ``user``, ``assistant`` and ``system``; other roles stay. ``parts`` may be given as
    text or as any iterable of parts; text parts without text are left out.
    """

    __slots__ = ()

    def __new__(
        cls,
        role: str,
        parts: str | Iterable[Part] = (),
        name: str | None = None,
        tool_calls: Iterable[object] = (),
        tool_call_id: str | None = None,
    ) -> Message:
        """Make a message; see the class."""
        if isinstance(parts, str):
            kept: tuple[Part, ...] = (TextPart(parts),) if parts else ()
        else:
            kept = tuple([p for p in parts if not (isinstance(p, TextPart) and not p.text)])
            for part in kept:
                if not isinstance(part, PARTS):
                    raise PromptError(f"a message holds {type(part).__name__}", "give text, or a list of content parts")
        return super().__new__(cls, ROLES.get(role, role), kept, name, tuple(tool_calls), tool_call_id)

    def __getnewargs__(self) -> tuple[object, ...]:
        return tuple(self)

    def __repr__(self) -> str:
        """Show the role and at most ten parts, each in short."""
        more = ", …" if len(self.parts) > _SHOWN_PARTS else ""
        return f"Message({self.role}: {', '.join(map(repr, self.parts[:_SHOWN_PARTS]))}{more})"

    def beside_content(self) -> dict[str, Any]:
        """Return the keys beside the content that the message has: ``name``, ``tool_calls``, ``tool_call_id``."""
        found: dict[str, Any] = {}
        if self.name is not None:
            found["name"] = self.name
        if self.tool_calls:
            found["tool_calls"] = list(self.tool_calls)
        if self.tool_call_id is not None:
            found["tool_call_id"] = self.tool_call_id
        return found

    @property
    def text(self) -> str:
        """The texts of the message joined without a separator."""
        return joined_text([p.text for p in self.parts if isinstance(p, TextPart)])


def checked(message: object) -> Message:
    """Return ``message`` if it is a ``Message``.

    Raises:
        TargetError: it is anything else, such as a dict.
    """
    if not isinstance(message, Message):
        kind = type(message).__name__
        raise TargetError(f"a message is {kind}", "give a list of Messages; from_openai(…) makes them of dicts")
    return message


_SOURCE_KEYS = ("url", "data", "path")
_TEXT_TYPES = ("text", "input_text", "output_text")


def part_of(part: Mapping[str, object]) -> TextPart | MediaRef:
    """Return a content part dict as a ``TextPart`` or ``MediaRef``. Nothing is read.

    Takes the forms of OpenAI (``image_url`` as object or string, ``input_audio``, ``input_image``), of vLLM
    (``audio_url``, ``video_url``) and of Hugging Face (``{"type": "image", "image": …}`` or ``"url"``). A null is a
    missing key, because tables give all parts the same keys.

    Raises:
        PromptError: the part has no known type, or names no source.
    """
    kind = part.get("type")
    if kind in _TEXT_TYPES and isinstance(part.get("text"), str):
        return TextPart(text_of(part["text"]), _others(part, ("type", "text")))
    modality = next((m for m in MODALITIES if isinstance(kind, str) and m in kind), None)
    if modality is None or not isinstance(kind, str):
        raise PromptError(f"a content part of unknown type {shown(kind)}", "see the targets for the known types")
    used = next((k for k in (kind, modality, f"{modality}_url", "url", "path") if part.get(k) is not None), "")
    body = part.get(used)
    options: Pairs = ()
    if isinstance(body, Mapping) and not ("bytes" in body or "array" in body):
        key = next((k for k in _SOURCE_KEYS if body.get(k) is not None), "")
        options = _others(body, (key,))
        body = body.get(key)
    if body is None:
        raise PromptError(f"a content part of type '{kind}' names no source", f"give '{kind}'", code="MM715")
    form = "" if kind == f"{modality}_url" else kind
    return MediaRef(modality, body, form, options, _others(part, ("type", used)))


def part_dict(part: TextPart | MediaRef, source: object = None) -> dict[str, object]:
    """Return a part as the content part dict that names it, the inverse of ``part_of``; nothing is read."""
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text, **dict(part.extra)}
    kind = part.form or f"{part.modality}_url"
    key = "data" if kind == "input_audio" else "url"
    return {
        "type": kind,
        kind: {key: part.source if source is None else source, **dict(part.options)},
        **dict(part.extra),
    }


def _others(mapping: Mapping[str, object], known: tuple[str, ...]) -> Pairs:
    return tuple([(k, v) for k, v in mapping.items() if k not in known and v is not None])


_T = TypeVar("_T", bound=Hashable)
Place = tuple[Union[str, int, None], ...]
"""Where a value of a row stands: its column, the number of an element; None before the number of a tagged segment."""


class Asked(NamedTuple):
    """A question about the value at a place of a row, and the answer that the row gave."""

    place: Place
    question: Callable[[Any], Hashable]
    answer: Hashable


class Trace:
    """The questions that are asked about the values of a row while its request is made.

    Rows with the same columns that give the same answers have the same request but for their values.
    ``is_plain`` is False if a question cannot be asked of other rows, so that the request is right for this row only.
    """

    __slots__ = ("_known", "asked", "is_plain")

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.is_plain = True
        self._known: dict[tuple[Place, object], Hashable] = {}

    def know(self, place: Place, question: Callable[[Any], Hashable], answer: Hashable) -> None:
        """Note an answer that follows from those that were given."""
        self._known[place, question] = answer

    def ask(self, place: Place, question: Callable[[Any], _T], value: object) -> _T:
        """Return the answer to a question about a value, which is asked once."""
        key = (place, question)
        if key not in self._known:
            answer = self._known[key] = question(value)
            self.asked.append(Asked(place, question, answer))
        return self._known[key]  # type: ignore[return-value]  # the answer to this question


class Value:
    """Stands for a value of a row while its request is made for the first time.

    It can be put into texts and into requests. What decides by it asks a question (``asked``), which is recorded. Any
    other use gives the value itself, and the request is then right for this row only. ``real`` is the value, for those
    who know the answer to their question already.
    """

    __slots__ = ("_trace", "place", "real")

    def __init__(self, real: object, place: Place, trace: Trace) -> None:
        self.real = real
        self._trace = trace
        self.place = place

    @property  # type: ignore[misc]  # what isinstance looks at
    def __class__(self) -> type:
        """The type of the value, which all rows of a form share."""
        return type(self.real)

    def asked(self, question: Callable[[Any], _T]) -> _T:
        """Return the answer to a question."""
        return self._trace.ask(self.place, question, self.real)

    def know(self, question: Callable[[Any], Hashable], answer: Hashable) -> None:
        """Note an answer that follows from those that were given."""
        self._trace.know(self.place, question, answer)

    def element(self, value: object, *step: str | int | None) -> Value:
        """Return what stands for a part of the value."""
        return Value(value, (*self.place, *step), self._trace)

    def computed(self, text: str, read: Iterable[str]) -> Value:
        """Return what stands for a text that is computed from columns, this value among them."""
        return Value(text, (COMPUTED, *read), self._trace)

    def itself(self) -> Any:
        """Return the value itself: the request is then right for this row only."""
        self._trace.is_plain = False
        return self.real

    def __getattr__(self, name: str) -> Any:
        if type(self.real) in (str, int, float) and not hasattr(self.real, name):  # as for all values of this type
            raise AttributeError(name)
        return getattr(self.itself(), name)

    def __bool__(self) -> bool:
        is_text = isinstance(self.real, str)
        return (is_text and not self.asked(blank)) or bool(self.asked(bool))

    def __add__(self, other: object) -> Pieces:
        return Pieces((self, other))

    def __radd__(self, other: object) -> Pieces:
        return Pieces((other, self))

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("a stand-in for a value leaves its trace")


class Hole(Value):
    """Stands for the bytes of a medium, which are read for each row."""

    __slots__ = ()


class Pieces:
    """A text in which values of a row stand: texts, and ``Value``s for them. See there."""

    __slots__ = ("pieces", "section")

    pieces: tuple[str | Value, ...]
    section: object

    def __init__(self, given: Iterable[object]) -> None:
        every: list[Any] = []
        for piece in given:
            every += piece.pieces if type(piece) is Pieces else [piece]
        self.pieces = tuple([piece for piece in every if type(piece) is not str or piece])

    @property  # type: ignore[misc]  # what isinstance looks at
    def __class__(self) -> type:
        """A text."""
        return str

    def itself(self) -> str:
        """Return the text itself: the request is then right for this row only."""
        return "".join([str(piece.itself()) if stands_in(piece) else str(piece) for piece in self.pieces])

    def __getattr__(self, name: str) -> Any:
        if name == "section":  # that of a prompt, where it is a loose text of one
            raise AttributeError(name)
        return getattr(self.itself(), name)

    def __bool__(self) -> bool:
        return any(not stands_in(piece) or type(piece.real) is not str or bool(piece) for piece in self.pieces)

    def __add__(self, other: object) -> Pieces:
        return Pieces((self, other))

    def __radd__(self, other: object) -> Pieces:
        return Pieces((other, self))

    __reduce__ = Value.__reduce__


def _delegating(name: str) -> Callable[..., object]:
    def method(self: Value | Pieces, *arguments: object) -> object:
        return getattr(self.itself(), name)(*arguments)

    return method


for _name in (
    "__str__", "__repr__", "__format__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__hash__",
    "__len__", "__iter__", "__contains__", "__getitem__", "__int__", "__float__", "__mod__", "__mul__",
):  # fmt: skip
    setattr(Value, _name, _delegating(_name))
    setattr(Pieces, _name, _delegating(_name))


def stands_in(value: object) -> TypeGuard[Value]:
    """Return whether an object stands for a value of a row."""
    return type(value) is Value


COMPUTED = "\0computed"
"""No column: the place of a text that was computed from values, such as Jinja's, begins with it."""


def computed(make: Callable[[Any], str], columns: object, read: Iterable[str]) -> str:
    """Return the text that is made of the columns of a row, or what stands for it where these hold stand-ins.

    ``read`` are the columns that it is made of. A text that is made of stand-ins is right for this row only.
    """
    met: list[Value] = []
    real = _bare(columns, met)
    text = make(real)
    return met[0].computed(text, read) if met else text  # type: ignore[return-value]  # it stands for a text


def _bare(value: object, met: list[Value]) -> object:
    """Return a value with the values themselves in the place of stand-ins, which are added to ``met``."""
    if stands_in(value):
        met.append(value)
        return value.itself()
    if type(value) is Pieces:
        met += [piece for piece in value.pieces if stands_in(piece)]
        return value.itself()
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)([_bare(item, met) for item in value])
    return {key: _bare(item, met) for key, item in value.items()} if isinstance(value, Mapping) else value


def ask(value: object, question: Callable[[Any], _T]) -> _T:
    """Return the answer to a question about a value, also of what stands for one."""
    return value.asked(question) if stands_in(value) else question(value)


def text_of(value: object) -> str:
    """Return a value as text; what stands for a value stays, and is put into texts as text."""
    if type(value) is str or type(value) is Pieces:
        return value  # type: ignore[return-value]  # it stands for a text
    if stands_in(value):
        if type(value.real) is str:
            return value  # type: ignore[return-value]  # it stands for a text
        if type(value.real) in (int, float) or value.asked(is_visible):
            return Pieces((value,))  # type: ignore[return-value]  # it stands for a text
    return str(value)


def real_text(text: str) -> str:
    """Return a text itself, also where a stand-in stands for it: for words to a person, never for a request."""
    given: object = text
    if type(given) is Pieces:
        return "".join([str(piece.real) if stands_in(piece) else str(piece) for piece in given.pieces])
    return str(given.real) if stands_in(given) else text


def is_visible(value: object) -> bool:
    """Return whether the text of a value is not blank; a question, see ``Value``."""
    return bool(str(value).strip())


def joined_text(texts: Iterable[str], between: str = "") -> str:
    """Return texts joined; with what stands for values among them, what stands for the whole."""
    every = list(texts)
    try:
        return between.join(every)
    except TypeError:
        pieces: list[object] = []
        for number, text in enumerate(every):
            pieces += [between, text] if number else [text]
        made = Pieces(pieces)
        return made.pieces[0] if len(made.pieces) == 1 and isinstance(made.pieces[0], str) else made  # type: ignore[return-value]  # it stands for a text


def is_blank(text: str) -> bool:
    """Return whether a text is empty or white space alone."""
    given: object = text
    if stands_in(given):
        return bool(given.asked(blank))
    if type(given) is Pieces:
        return all(bool(piece.asked(blank)) if stands_in(piece) else blank(piece) for piece in given.pieces)
    return not text or text.isspace()


def blank(value: object) -> bool:
    """Return whether a value is a text that is empty or white space alone; a question, see ``Value``."""
    return isinstance(value, str) and (not value or value.isspace())
