"""Dialogues: turns, and marks where the media stand.

Four layouts share ``conversations``, turns with ``from`` and ``value``. LLaVA: ``image``. ShareGPT: lists
``images``, ``videos``, ``audios``. Qwen: ``image`` or ``video``, one or several. InternVL: the same as Qwen, in files
that a meta file names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from mmprompt.datasets.layouts.layout import Layout, text_of
from mmprompt.datasets.list_cells import list_of_cell
from mmprompt.datasets.media_columns import holds_no_medium
from mmprompt.datasets.placeholders import MediaQueue, holds_mark
from mmprompt.datasets.sample import Sample, column_error
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


def _dialogue(sample: Sample, turns: Sequence[tuple[str, str]], media: Mapping[str, Sequence[object]]) -> Sample:
    """Return a sample with the messages of its turns; the last turn becomes ``answer`` if it is the assistant's.

    Args:
        sample: the row.
        turns: role and text of each turn; marks in the texts stand for ``media``.
        media: the media of each modality, in order.

    Raises:
        RowError: a mark has no medium, or a medium no mark.
    """
    turns, answer = _closing_answer(turns)
    queue = MediaQueue(media)
    messages = [Message(role, queue.place(text) if "<" in text else text) for role, text in turns]
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


def _closing_answer(turns: Sequence[tuple[str, str]]) -> tuple[Sequence[tuple[str, str]], str | None]:
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


def _turns_of(sample: Sample, column: str, role_key: str, text_key: str) -> list[tuple[str, str]]:
    """Return role and text of each turn in a column.

    Raises:
        RowError: the column holds no turns, or a turn has an unknown role or no text.
    """
    value = sample.columns.get(column)
    if not isinstance(value, (list, tuple)) or not value:
        what = f"column '{column}' is not a list of turns"
        raise column_error(column, what, f'give [{{"{role_key}": …, "{text_key}": …}}]', "MM007")
    return [_turn(turn, number, (column, role_key, text_key)) for number, turn in enumerate(value, 1)]


def _turn(turn: object, number: int, keys: tuple[str, str, str]) -> tuple[str, str]:
    column, role_key, text_key = keys
    fields = turn if isinstance(turn, (dict, Mapping)) else {}
    role, text = fields.get(role_key), fields.get(text_key)
    if not isinstance(role, str) or role.lower() not in ROLES:
        near = nearest(role, ROLES) if isinstance(role, str) else f"give it '{role_key}'"
        raise column_error(column, f"turn {number} has the role {shown(role)}", near, "MM607")
    if not isinstance(text, str):
        what = "null" if text is None else type(text).__name__
        raise column_error(column, f"'{text_key}' of turn {number} is {what}", "give it a text", "MM007")
    return ROLES[role.lower()], text


def media_of(sample: Sample) -> dict[str, list[object]]:
    """Return the media of a row by modality, from the columns of ``MEDIA``; null and empty columns have none."""
    found: dict[str, list[object]] = {}
    for modality in MODALITIES:
        values = [sample.columns[column] for column in MEDIA[modality] if column in sample.columns]
        media = [item for value in values if value is not None for item in list_of_cell(value)]
        found[modality] = [item for item in media if not holds_no_medium(item)]
    return found


def _read(sample: Sample) -> Sample:
    turns = _with_system(sample, _turns_of(sample, "conversations", "from", "value"))
    media = media_of(sample)
    folder = sample.columns.get("data_path")  # Qwen's: the folder in which the row's media lie
    if isinstance(folder, str) and folder:
        media = {m: [_in(folder, item) for item in items] for m, items in media.items()}
    return _dialogue(sample, turns, media)


def _with_system(sample: Sample, turns: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the turns, the text of the column ``system`` before them if they have no system turn."""
    system = sample.columns.get("system")
    return [("system", system), *turns] if isinstance(system, str) and system and turns[0][0] != "system" else turns


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


_LISTS = ("images", "videos", "audios")


def _llamafactory(sample: Sample) -> Sample:
    """``messages`` with marks, and the lists ``images``, ``videos`` and ``audios``.

    Its Alpaca form has ``instruction``, ``input``, ``output``, ``system`` and ``history`` in place of ``messages``.
    """
    if "messages" in sample.columns:
        turns = _with_system(sample, _turns_of(sample, "messages", "role", "content"))
    elif "instruction" in sample.columns:
        turns = _alpaca_turns(sample)
    else:
        raise column_error("messages", "no column 'messages', which llamafactory has", "give 'messages'", "MM006")
    return _dialogue(sample, turns, media_of(sample))


def _alpaca_turns(sample: Sample) -> list[tuple[str, str]]:
    columns = sample.columns
    turns = [("system", columns["system"])] if isinstance(columns.get("system"), str) and columns["system"] else []
    history = columns.get("history") or ()
    for pair in history if isinstance(history, (list, tuple)) else ():
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            raise column_error("history", "an element of the history is not a pair", "give [question, answer]", "MM007")
        turns += [("user", str(pair[0])), ("assistant", str(pair[1]))]
    asked = text_of(sample, "instruction")
    more = columns.get("input")
    turns.append(("user", f"{asked}\n{more}" if isinstance(more, str) and more else asked))
    if columns.get("output") is not None:
        turns.append(("assistant", text_of(sample, "output")))
    return [(role, str(text)) for role, text in turns]


def _is_llamafactory(columns: Mapping[str, object]) -> bool:
    if "instruction" in columns and "output" in columns:
        return "messages" not in columns
    messages = columns.get("messages")
    if not isinstance(messages, list) or columns.keys().isdisjoint(_LISTS):
        return False
    return all(isinstance(m, Mapping) and isinstance(m.get("content"), str) for m in messages)


_PICTURE = re.compile(r"<img>(.*?)</img>", re.DOTALL)


def _qwen_vl(sample: Sample) -> Sample:
    """The first Qwen-VL: texts name pictures themselves, as ``<img>path</img>``."""
    turns = _turns_of(sample, "conversations", "from", "value")
    pictures: list[object] = []
    marked = []
    for number, (role, text) in enumerate(turns, 1):
        if holds_mark(text):
            what = f"turn {number} holds a mark such as <image>, which qwen-vl does not have"
            raise column_error("conversations", what, "name the format: --format llava", "MM107")
        found = _PICTURE.findall(text)
        if text.count("<img>") != len(found) or any(not path.strip() for path in found):
            what = f"turn {number} has an <img> without a path or without </img>"
            raise column_error("conversations", what, "write <img>path</img>", "MM715")
        pictures += found
        marked.append((role, _PICTURE.sub("<image>", text)))
    return _dialogue(sample, marked, {"image": pictures})


def _is_qwen_vl(columns: Mapping[str, object]) -> bool:
    turns = columns.get("conversations")
    if not isinstance(turns, (list, tuple)) or "image" in columns or "images" in columns:
        return False
    return any(isinstance(t, Mapping) and "<img>" in str(t.get("value")) for t in turns)


LAYOUTS = (
    Layout("llamafactory", (), _is_llamafactory, _llamafactory),
    Layout("qwen-vl", ("conversations",), _is_qwen_vl, _qwen_vl),
    Layout("qwen", ("conversations",), _is_qwen, _read),
    Layout("sharegpt", ("conversations",), _is_sharegpt, _read),
    Layout("llava", ("conversations",), _is_dialogue, _read),
)
