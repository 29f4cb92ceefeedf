"""Chats: rows with messages, in the forms of AIS tags, OpenAI and the training frameworks."""

from __future__ import annotations

from typing import cast

from mmprompt.datasets.placeholders import holds_mark, marked_text
from mmprompt.datasets.writers.record import Record, media_then_text, not_held, only_user_message, other_form
from mmprompt.datasets.writers.stored_media import MediaStore
from mmprompt.errors import MMPromptError, RowError
from mmprompt.messages import MediaRef, Part, TextPart, part_dict
from mmprompt.segments import Segment, join_segments

Row = dict[str, object]
_FROM = {"user": "human", "assistant": "gpt", "system": "system"}


def ais(record: Record, store: MediaStore) -> Row:
    """Return a row whose column ``content`` holds tagged text.

    Raises:
        RowError: a text holds a tag, or a name cannot stand between tags.
    """
    parts = only_user_message(record, "ais").parts
    segments = [_segment(part, store) for part in parts]
    try:
        content = join_segments(segments)
    except MMPromptError as error:
        raise RowError(f"the row holds a tag: {error.what}", "write --to openai", code="MM105") from None
    return _beside(record, {"content": content})


def _segment(part: Part, store: MediaStore) -> Segment:
    if isinstance(part, TextPart):
        return Segment("text", part.text)
    return Segment(part.modality, store.value(part))


def mm_custom(record: Record, store: MediaStore) -> Row:
    """Return a row of AISBench's ``mm_custom``: media of one modality, then the question."""
    media, text = media_then_text(record, "mm_custom")
    modalities = {medium.modality for medium in media}
    if len(modalities) != 1:
        named = ", ".join(sorted(modalities)) or "none"
        raise not_held(f"mm_custom holds media of one modality, and the row has: {named}", "ais")
    paths = [store.value(medium) for medium in media]
    asked = {"question": text} if text else {}
    return _beside(record, {"type": modalities.pop(), "path": paths[0] if len(paths) == 1 else paths, **asked})


def openai(record: Record, store: MediaStore) -> Row:
    """Return a row with ``messages`` in OpenAI's form, and the answer beside them; a Batch line stays one."""
    own: Row = {"messages": wire_messages(record, store)}
    if record.batch is None:
        return _beside(record, own)
    name = {} if record.id is None else {"custom_id": record.id}
    line = {**name, **record.batch, "body": {**cast("Row", record.batch["body"]), **own}}
    return _beside(record._replace(id=None), line)


def wire_messages(record: Record, store: MediaStore) -> list[Row]:
    """Return the messages of a row in OpenAI's form."""
    messages: list[Row] = []
    for message in record.messages:
        only = message.parts[0] if len(message.parts) == 1 else None
        plain = isinstance(only, TextPart) and not only.extra
        content = message.text if plain or not message.parts else [_wire(part, store) for part in message.parts]
        messages.append({"role": message.role, "content": content, **message.beside_content()})
    return messages


def _wire(part: Part, store: MediaStore) -> Row:
    if isinstance(part, TextPart):
        return part_dict(part)
    ref = MediaRef(part.modality, store.value(part), "", part.options, part.extra)
    return part_dict(ref)


def llava(record: Record, store: MediaStore) -> Row:
    """Return a row of LLaVA: ``image`` for one picture, a list for several."""
    turns, media = _marked(record, store, "from", "value", _FROM)
    if media["audio"] or media["video"]:
        raise not_held("llava holds pictures only", "llamafactory")
    images = media["image"]
    own = {"image": images[0] if len(images) == 1 else images} if images else {}
    return _beside(record, {**own, "conversations": turns}, answered=True)


def qwen(record: Record, store: MediaStore) -> Row:
    """Return a row of Qwen's fine-tuning: ``image`` and ``video``, one or a list."""
    turns, media = _marked(record, store, "from", "value", _FROM)
    if media["audio"]:
        raise not_held("qwen holds pictures and videos only", "llamafactory")
    own = {name: items[0] if len(items) == 1 else items for name, items in media.items() if items}
    return _beside(record, {**own, "conversations": turns}, answered=True)


def sharegpt(record: Record, store: MediaStore) -> Row:
    """Return a row of ShareGPT: ``conversations`` and lists of media."""
    turns, media = _marked(record, store, "from", "value", _FROM)
    lists = {f"{name}s": items for name, items in media.items() if items or name == "image"}
    return _beside(record, {"conversations": turns, **lists}, answered=True)


def llamafactory(record: Record, store: MediaStore) -> Row:
    """Return a row of LLaMA-Factory: ``messages`` with marks, and lists of media."""
    roles = {role: role for role in _FROM}
    turns, media = _marked(record, store, "role", "content", roles)
    lists = {f"{name}s": items for name, items in media.items() if items or name == "image"}
    return _beside(record, {"messages": turns, **lists}, answered=True)


def _marked(
    record: Record, store: MediaStore, role_key: str, text_key: str, roles: dict[str, str]
) -> tuple[list[Row], dict[str, list[object]]]:
    """Return the turns of a row with marks in their texts, the answer as the last turn, and the media."""
    media: dict[str, list[object]] = {"image": [], "audio": [], "video": []}
    turns: list[Row] = []
    for message in record.messages:
        if message.role not in roles or message.beside_content():
            raise not_held(f"a message of the role {message.role} cannot be a turn", "openai")
        text, placed = marked_text(message.parts)
        for modality, sources in placed.items():
            media[modality] += [store.value(medium) for medium in sources]
        turns.append({role_key: roles[message.role], text_key: text})
    if record.answer is not None:
        if not isinstance(record.answer, str) or holds_mark(record.answer):
            kind = type(record.answer).__name__
            raise not_held(f"the answer is of type {kind} or holds a mark, but a turn holds only text", "openai")
        turns.append({role_key: roles["assistant"], text_key: record.answer})
    elif record.messages[-1].role == "assistant":
        what = "the last message is the assistant's, and would be read as the answer"
        raise RowError(what, other_form(record), code="MM800")
    return turns, media


def _beside(record: Record, own: Row, *, answered: bool = False) -> Row:
    """Return a row with its id, its own keys, its answer, its choices and its other columns."""
    made: Row = {} if record.id is None else {"id": record.id}
    made |= own
    if record.answer is not None and not answered:
        made["answer"] = record.answer
    if record.choices:
        made["options"] = list(record.choices)
    for name, value in record.others.items():
        if name in made:
            raise RowError(f"the column '{name}' has the name of a key of the format", "rename it", code="MM800")
        made[name] = value
    return made
