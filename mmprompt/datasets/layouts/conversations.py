"""``conversations``: turns with ``from`` and ``value``, and marks where the media stand.

Four layouts share it. LLaVA: ``image``. ShareGPT: lists ``images``, ``videos``, ``audios``. Qwen: ``image`` or
``video``, one or several. InternVL: the same as Qwen, in files that a meta file names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from mmprompt.datasets.layouts.layout import Layout
from mmprompt.datasets.list_cells import list_of_cell
from mmprompt.datasets.placeholders import MediaQueue, holds_mark
from mmprompt.datasets.sample import Sample
from mmprompt.errors import RowError, nearest, shown
from mmprompt.messages import MODALITIES, Message

ROLES = {
    "human": "user", "user": "user", "gpt": "assistant", "assistant": "assistant", "bot": "assistant",
    "chatgpt": "assistant", "bard": "assistant", "system": "system",
}  # fmt: skip
"""The roles of turns, and their names in messages."""

MEDIA = {modality: (modality, f"{modality}s") for modality in MODALITIES}
"""The columns that hold the media of each modality."""


_SENT = frozenset(
    (
        "conversations", "messages", "system", "instruction", "input", "output", "history", "data_path", "content",
        *(name for names in MEDIA.values() for name in names),
    )
)  # fmt: skip
"""The columns that the messages of a dialogue hold."""


def dialogue(sample: Sample, turns: Sequence[tuple[str, str]], media: Mapping[str, Sequence[object]]) -> Sample:
    """Return a sample with the messages of its turns; the last turn becomes ``answer`` if it is the assistant's.

    Args:
        sample: the row.
        turns: role and text of each turn; marks in the texts stand for ``media``.
        media: the media of each modality, in order.

    Raises:
        RowError: a mark has no medium, or a medium no mark.
    """
    turns, answer = closing_answer(turns)
    queue = MediaQueue(media)
    messages = [Message(role, queue.place(text)) for role, text in turns]
    queue.close()
    if not any(message.parts for message in messages):
        raise RowError("the dialogue has nothing to send", "give it a turn of the user", code="MM700")
    columns = dict(sample.columns)
    if answer is not None:
        columns.setdefault("answer", answer)
    asked = [message for message in messages if message.role == "user"]
    if len(asked) == 1:
        columns.setdefault("content", list(asked[0].parts))
    return sample._replace(columns=columns, messages=tuple(messages), scanned=False, sent=_SENT)


def closing_answer(turns: Sequence[tuple[str, str]]) -> tuple[Sequence[tuple[str, str]], str | None]:
    """Return the turns that are sent, and the text of a closing assistant turn, which is the answer.

    Raises:
        RowError: the answer holds a mark.
    """
    if not turns or turns[-1][0] != "assistant":
        return turns, None
    answer = turns[-1][1]
    if holds_mark(answer):
        raise RowError("the answer holds a mark of a medium", "an answer is text: remove the mark", code="MM107")
    return turns[:-1], answer


def turns_of(sample: Sample, column: str, role_key: str, text_key: str) -> list[tuple[str, str]]:
    """Return role and text of each turn in a column.

    Raises:
        RowError: the column holds no turns, or a turn has an unknown role or no text.
    """
    value = sample.columns.get(column)
    if not isinstance(value, (list, tuple)) or not value:
        what = f"column '{column}' is not a list of turns"
        raise RowError(what, f'give [{{"{role_key}": …, "{text_key}": …}}]', code="MM007").located(column=column)
    return [_turn(turn, number, (column, role_key, text_key)) for number, turn in enumerate(value, 1)]


def _turn(turn: object, number: int, keys: tuple[str, str, str]) -> tuple[str, str]:
    column, role_key, text_key = keys
    fields = turn if isinstance(turn, Mapping) else {}
    role, text = fields.get(role_key), fields.get(text_key)
    if not isinstance(role, str) or role.lower() not in ROLES:
        near = nearest(role, ROLES) if isinstance(role, str) else f"give it '{role_key}'"
        raise RowError(f"turn {number} has the role {shown(role)}", near, code="MM607").located(column=column)
    if not isinstance(text, str):
        what = "null" if text is None else type(text).__name__
        raise RowError(f"'{text_key}' of turn {number} is {what}", "give it a text", code="MM007").located(
            column=column
        )
    return ROLES[role.lower()], text


def media_of(sample: Sample, names: Iterable[str] = MODALITIES) -> dict[str, list[object]]:
    """Return the media of a row by modality, from the columns of ``MEDIA``; null and empty columns have none."""
    found: dict[str, list[object]] = {}
    for modality in names:
        values = [sample.columns[column] for column in MEDIA[modality] if column in sample.columns]
        media = [item for value in values if value is not None for item in list_of_cell(value)]
        found[modality] = [item for item in media if item is not None and item != ""]
    return found


def _read(sample: Sample) -> Sample:
    turns = turns_of(sample, "conversations", "from", "value")
    system = sample.columns.get("system")
    if isinstance(system, str) and system and turns[0][0] != "system":
        turns.insert(0, ("system", system))
    media = media_of(sample)
    folder = sample.columns.get("data_path")  # Qwen's: the folder in which the row's media lie
    if isinstance(folder, str) and folder:
        media = {m: [_in(folder, item) for item in items] for m, items in media.items()}
    return dialogue(sample, turns, media)


def _in(folder: str, item: object) -> object:
    return f"{folder.rstrip('/')}/{item}" if isinstance(item, str) else item


def _is_dialogue(columns: Mapping[str, object]) -> bool:
    turns = columns.get("conversations")
    return isinstance(turns, (list, tuple)) and bool(turns) and isinstance(turns[0], Mapping) and "from" in turns[0]


def _is_qwen(columns: Mapping[str, object]) -> bool:
    lists = isinstance(columns.get("image"), list) or "video" in columns
    return _is_dialogue(columns) and ("data_path" in columns or lists)


def _is_sharegpt(columns: Mapping[str, object]) -> bool:
    return _is_dialogue(columns) and (not columns.keys().isdisjoint(("images", "videos", "audios", "system", "tools")))


LAYOUTS = (
    Layout("qwen", ("conversations",), _is_qwen, _read),
    Layout("sharegpt", ("conversations",), _is_sharegpt, _read),
    Layout("llava", ("conversations",), _is_dialogue, _read),
)
