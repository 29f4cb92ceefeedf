"""One request of a task, ready to be sent: what ``Task.requests`` yields."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, NoReturn

from mmprompt.errors import Where
from mmprompt.messages import MediaPart
from mmprompt.render.builder import WireRequest
from mmprompt.render.row_bytes import media_of, part_bytes
from mmprompt.render.settings import RequestSettings
from mmprompt.targets.part_writer import Wire
from mmprompt.targets.records import keyed
from mmprompt.targets.wire_json import Payload, json_body, with_text

_SDK_KEYS = frozenset(
    (
        "frequency_penalty", "logit_bias", "logprobs", "max_completion_tokens", "max_tokens", "metadata", "n",
        "parallel_tool_calls", "presence_penalty", "reasoning_effort", "response_format", "seed", "service_tier",
        "stop", "stop_sequences", "stream_options", "temperature", "thinking", "tool_choice", "tools", "top_k",
        "top_logprobs", "top_p", "user", "verbosity",
    )
)  # fmt: skip
"""Settings that OpenAI's or Anthropic's SDK takes as arguments of ``create``. All others go as its ``extra_body``."""

_OPENAI_LACKS = frozenset(("top_k", "stop_sequences", "thinking"))
_SHOWN = 60


class SentMedium(NamedTuple):
    """A medium that a request sends.

    ``size`` is in bytes, before base64; ``sha256`` is the hexadecimal digest of these bytes. Frames of a video count
    together. ``origin`` is the source in short. ``changes`` says in words what was changed. A medium that goes by its
    URL is not read: its type is empty, its size 0 and its digest empty.
    """

    modality: str
    media_type: str
    size: int
    sha256: str
    origin: str
    changes: tuple[str, ...]


class Request(Mapping[str, Any]):
    """One request: a row's, or one of its turns' or labels'. Immutable and picklable.

    It is a mapping of the arguments of OpenAI's and Anthropic's SDKs, the model left out:
    ``client.chat.completions.create(model=NAME, **request)``. ``body()`` is the same request as bytes of JSON.
    Anthropic requires ``max_tokens``: give it to the SDK yourself if the task has no ``max_out_len``.

    Attributes:
        id: the row's id, of its own type.
        answers: the right answers as the row has them; of a dialogue those of this turn. Empty if the row has none.
        choices: the texts of a multiple-choice row.
    """

    __slots__ = ("_line", "_settings", "_wire", "answers", "choices", "id")
    id: object
    answers: tuple[object, ...]
    choices: tuple[str, ...]
    _wire: WireRequest
    _settings: RequestSettings
    _line: tuple[str | None, int | None]

    def __init__(  # noqa: PLR0917  # made in one place, and by pickle
        self,
        id: object,  # noqa: A002  # the public name
        wire: WireRequest,
        settings: RequestSettings,
        answers: tuple[object, ...] = (),
        choices: tuple[str, ...] = (),
        line: tuple[str | None, int | None] = (None, None),
    ) -> None:
        put = object.__setattr__
        put(self, "id", id)
        put(self, "_wire", wire)
        put(self, "_settings", settings)
        put(self, "answers", answers)
        put(self, "choices", choices)
        put(self, "_line", line)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        """Refuse: a request is immutable."""
        raise AttributeError(f"a request is immutable: '{name}' cannot be set")

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle as the arguments of the construction."""
        return Request, (self.id, self._wire, self._settings, self.answers, self.choices, self._line)

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        """Return whether ``other`` is this very request; to compare content, compare ``body()``."""
        return self is other

    def __getitem__(self, key: str) -> Any:
        """Return an argument of the SDK, such as ``messages``, ``system`` or ``max_tokens``."""
        wire = self.unencoded
        return with_text(wire[key]) if key in wire else self._arguments()[key]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the arguments."""
        yield from self.unencoded
        yield from self._arguments()

    def __len__(self) -> int:
        """Return how many arguments there are."""
        return len(self.unencoded) + len(self._arguments())

    def __repr__(self) -> str:
        """Show the id, the target and what is sent, in short."""
        media = media_of(self._wire.wire)
        beside = [f" {n} {v!r}"[:_SHOWN] for n, v in (("turn", self.turn), ("label", self.label)) if v is not None]
        name = f"{str(self.id)[:_SHOWN]!r}{''.join(beside)} for {self._settings.target}"
        return f"<Request {name}: {len(media)} media, {sum(map(part_bytes, media)):,} bytes>"

    @property
    def turn(self) -> int | None:
        """The 0-based turn of a dialogue; None for other tasks."""
        return self._wire.turn

    @property
    def label(self) -> object:
        """The label of a PPL task; None for other tasks."""
        return self._wire.label

    @property
    def where(self) -> Where:
        """The file, line and id of the row, for messages about it."""
        return Where(*self._line, sample=str(self.id))

    @property
    def notes(self) -> tuple[str, ...]:
        """What was accepted but is odd, and how many in-context examples were dropped."""
        dropped = [f"no room for {self.dropped} of the in-context examples"] if self.dropped else []
        media = media_of(self._wire.wire)
        return (*dropped, *(f"{p.origin or p.modality}: {finding}" for p in media for finding in p.findings))

    @property
    def dropped(self) -> int:
        """How many in-context examples were left out because the prompt was too long."""
        return self._wire.dropped

    @property
    def unencoded(self) -> Wire:
        """The wire form with each medium as a ``Payload``, its bytes, for those who put the base64 elsewhere."""
        return keyed(self._wire.wire)

    @property
    def messages(self) -> list[dict[str, Any]] | None:
        """The messages as plain data in the target's wire form; None for Gemini, which has ``contents``."""
        return self.get("messages")

    @property
    def system(self) -> Any:
        """The system prompt where the wire form has it apart (Anthropic), else None."""
        return self.get("system")

    @property
    def contents(self) -> list[dict[str, Any]] | None:
        """The contents of a request to Gemini, else None."""
        return self.get("contents")

    @property
    def media(self) -> tuple[SentMedium, ...]:
        """The media that are sent, in their order; hashed when they are asked for."""
        return tuple(_sent_media(self._wire.wire, ""))

    def body(self, model: str | None = None) -> bytes:
        """Return the JSON body of the request.

        ``requests.post(url, data=request.body(), headers={"Content-Type": "application/json"})`` sends it.

        It holds the messages, the task's generation settings, ``max_out_len`` as the wire's ``max_tokens``, stop
        strings, and ``model``: the one given, else the task's, else none.

        Raises:
            TargetError: the target ``hf`` has no server.
            TaskError: Anthropic requires ``max_tokens``, and the task has no ``max_out_len``.
        """
        return json_body(self._settings.body(self._wire.wire, self.turn, model))

    def _arguments(self) -> dict[str, Any]:
        """Return the settings as arguments of the SDK; those it does not know as ``extra_body``."""
        if self._settings.wire not in ("openai", "anthropic"):
            return self._settings.keys_of(self.turn) if self._settings.wire == "gemini" else {}
        keys = self._settings.keys_of(self.turn)
        known = _SDK_KEYS - _OPENAI_LACKS if self._settings.wire == "openai" else _SDK_KEYS
        extra = {key: value for key, value in keys.items() if key not in known}
        own = {key: value for key, value in keys.items() if key in known}
        return {**own, "extra_body": extra} if extra else own


def _sent_media(wire: object, kind: str) -> Iterator[SentMedium]:
    """Yield the media of a wire form; ``kind`` is the type of the content part around it."""
    if type(wire) is Payload:
        yield _sent(wire.part)
    elif isinstance(wire, dict):
        kind = str(wire.get("type") or wire.get("mime_type") or kind)
        for key, value in wire.items():
            if key in ("url", "file_uri") and isinstance(value, str):
                modality = next((m for m in ("image", "audio", "video") if m in kind), kind)
                yield SentMedium(modality, "", 0, "", value, ())
            else:
                yield from _sent_media(value, key if key.endswith("_url") else kind)
    elif isinstance(wire, list):
        for value in wire:
            yield from _sent_media(value, kind)


def _sent(part: MediaPart) -> SentMedium:
    digest = hashlib.sha256()
    for data in part.frames or (part.data,):
        digest.update(data)
    return SentMedium(part.modality, part.media_type, part_bytes(part), digest.hexdigest(), part.origin, part.changes)
