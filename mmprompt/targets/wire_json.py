"""Records and requests: what they hold for each wire form, and their JSON as bytes without copying their media.

A request with a picture is a few hundred bytes of JSON around a few hundred thousand bytes of base64, which need no
escaping. ``record_chunks`` writes the JSON with a hole for each ``Payload`` and puts the base64 between the pieces.
``ChunkWriter`` hands all pieces to the kernel in one call, ``json_body`` joins them in one copy.
"""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Union

import orjson

from mmprompt.errors import TargetError, shown
from mmprompt.media.base64_text import encode
from mmprompt.targets import exact_json
from mmprompt.targets.json_values import JSONValue
from mmprompt.targets.limits import limits
from mmprompt.targets.part_writer import PartWriter, Payload, PayloadWriter, RefReader, Wire, WireValue

Written = Union[list[Wire], Wire]
"""Written messages: a list of them (``openai``, ``hf``), or the keys of a request (``anthropic``, ``gemini``)."""


_WRITERS = {"openai": "OpenAIWriter", "anthropic": "AnthropicWriter", "gemini": "GeminiWriter", "hf": "HFWriter"}
"""The wire forms, which are also the names of their modules, and their writers."""


def writer_for(target: str, payload: PayloadWriter, read: RefReader) -> PartWriter:
    """Return the writer of a target's wire form; its ``write`` returns ``Written``.

    Raises:
        TargetError: an unknown target, or one whose form cannot be written as JSON.
    """
    wire = limits(target).wire
    if wire not in _WRITERS:
        raise TargetError(f"the target {target} is not rendered to lines", f"use to_{wire} from Python")
    module = importlib.import_module(f"mmprompt.targets.{wire}")  # only one of these is needed
    writer: type[PartWriter] = getattr(module, _WRITERS[wire])
    return writer(target, payload=payload, read=read)


def content_of(wire: Any) -> Any:
    """Return the content of the first message that was written."""
    if isinstance(wire, list):
        return wire[0]["content"]
    return wire["messages"][0]["content"] if "messages" in wire else wire["contents"][0]["parts"]


def keyed(wire: Written) -> Wire:
    """Return written messages as keys of a request. A list of messages becomes the key ``messages``."""
    return wire if isinstance(wire, dict) else {"messages": wire}


def labelled(wires: Mapping[str, Written]) -> Wire:
    """Return the requests of several labels as one record: under each key a mapping from label to value."""
    by_label = {label: keyed(wire) for label, wire in wires.items()}
    keys = dict.fromkeys(key for request in by_label.values() for key in request)
    return {key: {label: request[key] for label, request in by_label.items() if key in request} for key in keys}


def custom_id(sample_id: object) -> str:
    """Return the batch ``custom_id``: the id if it is a string, otherwise its JSON text.

    Raises:
        TargetError: JSON cannot hold it.
    """
    try:
        return sample_id if isinstance(sample_id, str) else json.dumps(sample_id, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        raise TargetError(f"the id is {type(sample_id).__name__}", "give a text or a number", code="MM007") from None


def batch_id(sample_id: object, turn: int | None) -> str:
    """Return the ``custom_id`` of a request. That of a turn ends in ``#`` and the number of the turn."""
    name = custom_id(sample_id)
    return name if turn is None else f"{name}#{turn}"


def batch_line(sample_id: object, turn: int | None, body: Wire) -> Wire:
    """Return a line of OpenAI's batch files."""
    return {
        "custom_id": batch_id(sample_id, turn),
        "method": "POST",
        "url": "/v1/chat/completions",
        "body": body,
    }


__all__ = ["EncodedJSON", "Payload", "filled_chunks", "json_body", "record_chunks", "with_text"]

_HOLE = b"\0"
"""A raw NUL. JSON text never holds one: a NUL inside a string is written as an escape."""

_OPTIONS = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME
_LINE = _OPTIONS | orjson.OPT_APPEND_NEWLINE
_EXACT = (str, int, type(None))  # types that orjson prints as ``json`` does, or refuses
_FRAGMENT = orjson.Fragment(_HOLE)


class EncodedJSON:
    """A value of a request that is JSON already: its bytes, with a hole for each of its ``payloads``, in order."""

    __slots__ = ("payloads", "text")

    def __init__(self, text: bytes, payloads: list[Payload]) -> None:
        self.text = text
        self.payloads = payloads

    def chunks(self, before: bytes, after: bytes) -> list[bytes]:
        """Return the value as JSON with its payloads, between other bytes, in pieces."""
        text = before + self.text + after
        return filled_chunks(text, self.payloads) if self.payloads else [text]

    def digest(self, before: bytes, after: bytes) -> str:
        """Return the ``json_digest`` of the value between other bytes."""
        return _digest(before + self.text + after, self.payloads)

    def decoded(self) -> Any:
        """Return the value as plain data, with the payloads in their places."""
        head = os.urandom(8).hex()
        pieces = self.text.split(_HOLE)
        places = {f"{head}{number}": payload for number, payload in enumerate(self.payloads)}
        text = pieces[0] + b"".join([b'"%b"%b' % (n.encode(), p) for n, p in zip(places, pieces[1:], strict=True)])
        return _put(orjson.loads(text), places)


def _put(value: Any, places: Mapping[str, Payload]) -> Any:
    """Return a decoded value with the payloads in the places of their names."""
    if isinstance(value, dict):
        return {key: _put(item, places) for key, item in value.items()}
    if isinstance(value, list):
        return [_put(item, places) for item in value]
    return places.get(value, value) if isinstance(value, str) else value


def decoded(wire: Any) -> Any:
    """Return written messages as plain data whose leaves may be ``Payload``."""
    if type(wire) is EncodedJSON:
        return wire.decoded()
    if isinstance(wire, dict):
        return {key: value.decoded() if type(value) is EncodedJSON else value for key, value in wire.items()}
    return wire


def json_leaves(value: object) -> tuple[list[bytes], list[object]]:
    """Return a value as JSON cut at the leaves that are no JSON, and these leaves in order."""
    leaves: list[object] = []

    def note(leaf: object) -> orjson.Fragment:
        leaves.append(leaf)
        return _FRAGMENT

    return orjson.dumps(value, note, _OPTIONS).split(_HOLE), leaves


def with_text(value: WireValue) -> JSONValue:
    """Return a copy of a request in which every ``Payload`` is a string: plain data for a client."""
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, Payload):
        return str(value)
    if isinstance(value, Mapping):
        return {key: with_text(item) for key, item in value.items()}
    return [with_text(item) for item in value]


def json_body(request: Wire) -> bytes:
    """Return a request as JSON in one piece. Its media are encoded once and copied once."""
    return b"".join(record_chunks(request))


def record_chunks(record: dict[str, Any], *, newline: bool = False) -> list[bytes]:
    """Return the JSON of a record whose leaves may be ``Payload``, in pieces to be written one after the other.

    Numbers that orjson would change or refuse are printed as Python's ``json`` prints them, such as integers of any
    size. NaN and infinity in ``answer`` become texts. ``newline`` ends the record as a line.

    Raises:
        TargetError: a text with a lone surrogate, or a value that JSON cannot hold.
    """
    text, payloads = _text_and_payloads(record, _LINE if newline else _OPTIONS)
    return filled_chunks(text, payloads) if payloads else [text]


def json_digest(request: Wire) -> str:
    """Return a SHA-256 over the JSON of a request and over its media, whose bytes are hashed as they are."""
    return _digest(*_text_and_payloads(request, _OPTIONS))


def _digest(text: bytes, payloads: list[Payload]) -> str:
    from hashlib import sha256  # noqa: PLC0415  # OpenSSL takes 3 ms to load

    digest = sha256(text)
    for payload in payloads:
        digest.update(_opening(payload.prefix))
        for data in payload.part.frames or (payload.part.data,):
            digest.update(b"%d:" % len(data))
            digest.update(data)
    return digest.hexdigest()


def _text_and_payloads(record: dict[str, Any], option: int) -> tuple[bytes, list[Payload]]:
    """Return the JSON of a record with a hole for each ``Payload``, and the payloads."""
    payloads: list[Payload] = []

    def note(leaf: object) -> orjson.Fragment:
        if type(leaf) is EncodedJSON:
            payloads.extend(leaf.payloads)
            return orjson.Fragment(leaf.text)
        if type(leaf) is not Payload:
            raise TypeError  # _exact finds its place
        payloads.append(leaf)
        return _FRAGMENT

    if type(record.get("id")) not in _EXACT or type(record.get("answer")) not in _EXACT:
        spelled: dict[str, Any] = {
            k: orjson.Fragment(exact_json.dumps(exact_json.finite(record[k]) if k == "answer" else record[k]))
            for k in ("id", "answer")
            if k in record
        }
        record = {**record, **spelled}
    try:
        text = orjson.dumps(record, note, option)
    except TypeError:
        payloads.clear()
        try:
            text = orjson.dumps(_exact(record, ""), note, option)
        except (TypeError, RecursionError):
            raise TargetError("a value is nested too deeply for JSON", "flatten it", code="MM011") from None
    return text, payloads


def filled_chunks(text: bytes, payloads: list[Payload]) -> list[bytes]:
    """Return the pieces of a JSON text, and the payloads in its holes as base64."""
    if len(payloads) == 1 and not (part := payloads[0].part).frames:  # nearly every record
        head, _, tail = text.partition(_HOLE)
        return [head + _opening(payloads[0].prefix), payloads[0].base64 or encode(part.data), b'"' + tail]
    pieces = text.split(_HOLE)
    chunks = [pieces[0] + _opening(payloads[0].prefix)]
    encoded: dict[int, bytes] = {}  # a file that is named twice is encoded once
    for place, payload in enumerate(payloads, 1):
        if place > 1:
            chunks[-1] += _opening(payload.prefix)
        for frame in payload.part.frames or (payload.part.data,):
            if (base64 := encoded.get(id(frame))) is None:
                base64 = encoded[id(frame)] = payload.base64 or encode(frame)
            chunks += (base64, b",")
        chunks[-1] = b'"' + pieces[place]
    return chunks


@lru_cache(maxsize=64)
def _opening(prefix: str) -> bytes:
    return f'"{prefix}'.encode("ascii")


def _exact(value: object, place: str) -> object:
    """Return a value whose leaves are JSON already, except for payloads. ``place`` is its path in the record."""
    if isinstance(value, (Payload, EncodedJSON, orjson.Fragment)):
        return value
    if isinstance(value, dict):
        return {_key(key, place): _exact(item, f"{place}.{key}") for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_exact(item, f"{place}[{number}]") for number, item in enumerate(value)]
    try:
        return orjson.Fragment(exact_json.dumps(value))
    except TargetError as error:
        raise error.located(template=place[1:]) from None


def _key(key: object, place: str) -> str:
    if not isinstance(key, str):
        what = f"the key {shown(key)} is {type(key).__name__}"
        raise TargetError(what, "write it as a string").located(template=place[1:])
    _exact(key, f"{place} key")
    return key
