"""Datasets that hold dialogues: OpenAI chats, Batch lines, chats of TRL, LLaVA, ShareGPT, LLaMA-Factory and Qwen."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

from corpus_media import PICTURES, pictures, png, source, wav
from corpus_rows import ROWS, lines
from corpus_values import Made, Row, drawn, json_text, odd_text, odd_value, phrase, text

TOOLS = [
    {
        "type": "function",
        "function": {"name": "look", "parameters": {"type": "object", "properties": {"at": {"type": "string"}}}},
    }
]


def media_part(draw: Random, odd: float = 0.0) -> Row:
    """Return a content part of a medium in one of the forms in which chats have it."""
    how = draw.randrange(10)
    if how < 4:
        part: Row = {"type": "image_url", "image_url": {"url": source(draw, odd=odd)}}
        return (
            {**part, "image_url": {**part["image_url"], "detail": draw.choice(("low", "high", "auto"))}}
            if how == 3
            else part
        )
    if how == 4:
        return {"type": "image", "image": source(draw, odd=odd)}
    if how == 5:
        return {"type": "audio_url", "audio_url": {"url": source(draw, "audio", odd)}}
    if how == 6:
        return {"type": "video_url", "video_url": {"url": source(draw, "video", odd)}}
    number = draw.randrange(PICTURES)
    if how == 7:
        return {
            "type": "input_audio",
            "input_audio": {
                "data": base64.b64encode(wav(number % 8)).decode(),
                "format": draw.choice(("wav", "wav", "mp3")),
            },
        }
    if how == 8:
        return draw.choice(
            (
                {"type": "image", "base64": base64.b64encode(png(number)).decode()},
                {"type": "image", "path": f"media/p{number}.png"},
            )
        )
    return draw.choice(
        ({"type": "input_image", "image_url": pictures(draw, "url")()}, {"type": "image", "url": source(draw, odd=odd)})
    )


def picture_part(draw: Random) -> Row:
    """Return the part of a picture."""
    return {"type": "image_url", "image_url": {"url": source(draw)}}


def content(draw: Random, media: Callable[[Random], Row] | None, odd: float = 0.1) -> Any:
    """Return the content of a message: a text, or a list of parts."""
    if media is None or draw.random() < 0.3:
        return text(draw, odd)
    parts = [
        media(draw) if draw.random() < 0.5 else {"type": "text", "text": text(draw, odd)}
        for _ in range(draw.randint(1, 5))
    ]
    return parts if draw.random() < 0.9 else [*parts, {"type": "text", "text": ""}]


def turns(draw: Random, count: int, media: Callable[[Random], Row] | None, *, mixed: bool = False) -> list[Row]:
    """Return messages of so many turns; ``mixed`` lets roles come in any order, with tools and system messages."""
    found: list[Row] = [{"role": "system", "content": text(draw)}] if draw.random() < 0.4 else []
    for number in range(count):
        role = ("user", "assistant")[number % 2]
        if mixed and draw.random() < 0.25:
            role = draw.choice(("user", "assistant", "system", "developer", "tool", "user"))
        message: Row = {"role": role, "content": content(draw, media if role == "user" else None)}
        if mixed and role == "assistant" and draw.random() < 0.3:
            call = {
                "id": f"c{number}",
                "type": "function",
                "function": {"name": "look", "arguments": json.dumps({"at": phrase(draw, 2)})},
            }
            message = {"role": role, "content": draw.choice((None, "", "I look.")), "tool_calls": [call]}
            found.append(message)
            message = {"role": "tool", "tool_call_id": f"c{number}", "content": text(draw)}
        if mixed and draw.random() < 0.1:
            message["name"] = draw.choice(("Ann", "B-2"))
        found.append(message)
    return found


def chats(draw: Random, n: int) -> Made:
    """OpenAI chats of one to three turns, with media in each form."""
    media = (None, picture_part, media_part, partial(media_part, odd=0.1))[n % 4]

    def row(draw: Random) -> Row:
        return {"messages": turns(draw, draw.choice((1, 1, 3)), media), "answer": text(draw)}

    def short(draw: Random) -> Row:
        if draw.random() < 0.1:
            return {
                "messages": [
                    {"role": "user", "content": phrase(draw)},
                    {"role": "assistant", "content": draw.choice(("So ", "So"))},
                ]
            }
        return {
            "messages": [{"role": "user", "content": [picture_part(draw), {"type": "text", "text": text(draw)}]}],
            "answer": "x",
        }

    return lines(draw, drawn(draw, [row, short], ROWS))


def long_chats(draw: Random, n: int) -> Made:
    """Dialogues of 2 to 30 turns, with roles mixed, tools, names and system messages in the middle."""
    media = (None, picture_part)[n % 2]

    def row(draw: Random) -> Row:
        made: Row = {"messages": turns(draw, draw.randint(2, 30), media, mixed=n % 4 > 1)}
        return {**made, "tools": TOOLS} if n % 4 == 3 else made

    return lines(draw, drawn(draw, [row], ROWS // 2))


def odd_chats(draw: Random, n: int) -> Made:
    """Chats with wrong roles, contents, parts and keys among sound ones."""

    def sound(draw: Random) -> Row:
        return {"messages": turns(draw, 1, picture_part)}

    def odd(draw: Random) -> Row:
        row = {"messages": turns(draw, draw.randint(1, 4), media_part)}
        message = draw.choice(row["messages"])
        how = draw.randrange(13)
        parts = message["content"] if isinstance(message["content"], list) else [{"type": "text", "text": "x"}]
        changes: list[Callable[[], Any]] = [
            lambda: message.update(role=draw.choice(("User", "gpt", "", None, 7, "function"))), lambda: message.update(content=odd_value(draw)),
            lambda: message.pop("content"), lambda: message.update(extra=odd_value(draw)), lambda: message.update(content=[]),
            lambda: message.update(content=[*parts, odd_value(draw)]), lambda: message.update(content=[*parts, {"type": "picture", "url": "x"}]),
            lambda: message.update(content=[*parts, {"type": "text", "text": odd_value(draw)}]),
            lambda: message.update(content=[{"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}, *parts]), lambda: row.update(messages=odd_value(draw)),
            lambda: message.update(content=[*parts, {"type": "image_url", "image_url": odd_value(draw)}]), lambda: row["messages"].append(odd_value(draw)),
            lambda: message.update(content=[*parts, {"type": "text", "text": "t", "cache_control": {"type": "ephemeral"}}]),
        ]  # fmt: skip
        changes[how]()
        return row

    return lines(draw, drawn(draw, [sound, odd, odd], ROWS))


def batch_lines(draw: Random, n: int) -> Made:
    """Lines of OpenAI's Batch API, with settings of their own."""

    def row(draw: Random) -> Row:
        settings = [
            {},
            {"model": "own", "temperature": 0.5},
            {"model": "own", "max_tokens": 5, "tools": TOOLS},
            {"top_k": 3, "stop": ["a", "b"]},
        ]
        body: Row = {
            **draw.choice(settings[: 1 + n % 4]),
            "messages": turns(draw, draw.choice((1, 3)), picture_part if n % 2 else None),
        }
        return {
            "custom_id": f"r-{draw.randrange(10**6)}",
            "method": "POST",
            "url": "/v1/chat/completions",
            "body": body,
        }

    return lines(draw, drawn(draw, [row], ROWS // 2), "none")


def chat_columns(draw: Random, n: int) -> Made:
    """Chats whose media stand in columns, as for TRL and verl: parts without a source, marks in texts, completions."""

    def places(draw: Random) -> Row:
        number = draw.randint(0, 4)
        held = number if draw.random() < 0.9 else number + 1
        parts = [{"type": "image"} for _ in range(number)] + [{"type": "text", "text": text(draw)}]
        draw.shuffle(parts)
        return {
            "images": [source(draw) for _ in range(held)],
            "messages": [{"role": "user", "content": parts}],
            "answer": "a",
        }

    def marks(draw: Random) -> Row:
        number = draw.randint(0, 3)
        return {
            "images": [source(draw) for _ in range(number)],
            "messages": [{"role": "user", "content": marked(draw, number)}],
        }

    def prompt(draw: Random) -> Row:
        completion: Any = [{"role": "assistant", "content": text(draw)}] if draw.random() < 0.7 else odd_value(draw)
        parts = [{"type": "image"}, {"type": "text", "text": text(draw)}]
        return {"image": source(draw), "prompt": [{"role": "user", "content": parts}], "completion": completion}

    def plain(draw: Random) -> Row:
        return {"images": [], "messages": turns(draw, 3, None), "extra": 1}

    return lines(draw, drawn(draw, ([places], [marks], [prompt], [places, plain, marks])[n % 4], ROWS))


def marked(draw: Random, count: int, mark: str = "<image>", odd: float = 0.1) -> str:
    """Return a text with so many marks, in front, behind, inside, or with line breaks around them."""
    how = draw.randrange(4)
    if how == 0:
        return f"{mark}\n" * count + text(draw, odd)
    if how == 1:
        return text(draw, odd) + f"\n{mark}" * count
    pieces = [phrase(draw, 3)]
    for _ in range(count):
        pieces += [mark, draw.choice((" ", "", "\n")) + phrase(draw, 3)]
    return "".join(pieces) if how == 2 else "".join(pieces[1:])


def spoken(
    draw: Random,
    count: int,
    marks: int,
    keys: tuple[str, str] = ("from", "value"),
    names: tuple[str, str] = ("human", "gpt"),
) -> list[Row]:
    """Return turns of a dialogue whose media are marked in the turns of the user."""
    asked = [number for number in range(count) if number % 2 == 0]
    places = [draw.choice(asked) for _ in range(marks)]
    return [
        {keys[0]: names[number % 2], keys[1]: marked(draw, places.count(number)) if number % 2 == 0 else text(draw, 0.05)}
        for number in range(count)
    ]  # fmt: skip


def _count(draw: Random, marks: int, wrong: float) -> int:
    return max(marks + draw.choice((-1, 1)), 0) if draw.random() < wrong else marks


def llava(draw: Random, n: int) -> Made:
    """LLaVA's conversations: a picture or none, from one to fifteen pairs of turns."""

    def row(draw: Random) -> Row:
        has = draw.random() < 0.8
        count = draw.choice((2, 2, 2, 3, 4, draw.randint(2, 30)))
        made: Row = {"conversations": spoken(draw, count, _count(draw, int(has), 0.03 * (n % 3)))}
        return {"image": source(draw), **made} if has else made

    def odd(draw: Random) -> Row:
        made = row(draw)
        turn = draw.choice(made["conversations"])
        turn[draw.choice(("from", "value"))] = draw.choice((odd_value(draw), "system", "GPT", "tool", odd_text(draw)))
        return made

    return lines(draw, drawn(draw, [row, row, *([odd] if n % 2 else [])], ROWS))


def sharegpt(draw: Random, n: int) -> Made:
    """ShareGPT: lists of media, a system text, marks with and without numbers."""

    def row(draw: Random) -> Row:
        marks = draw.randint(0, 5)
        made: Row = {"conversations": spoken(draw, draw.choice((1, 2, 2, 4, draw.randint(2, 24))), marks)}
        made["images"] = [source(draw) for _ in range(_count(draw, marks, 0.05))]
        return {**made, "system": text(draw)} if draw.random() < 0.5 else made

    def several(draw: Random) -> Row:
        words = f"<video> {phrase(draw, 2)} <audio>\n{text(draw)}"
        turn = [{"from": "human", "value": words}, {"from": "gpt", "value": phrase(draw)}]
        return {
            "conversations": turn,
            "videos": [source(draw, "video")],
            "audios": [source(draw, "audio")],
            "images": None,
        }

    def by_number(draw: Random) -> Row:
        words = draw.choice(("<image 1> or <image 2>, and <image 1>?", "<image 2><image 1>", "<image 3>", "<image 1>"))
        return {
            "conversations": [{"from": "human", "value": words}],
            "images": [source(draw), source(draw)],
            "system": "s",
        }

    return lines(draw, drawn(draw, ([row], [row, several], [row, by_number], [row, several, by_number])[n % 4], ROWS))


def llamafactory(draw: Random, n: int) -> Made:
    """LLaMA-Factory: messages with lists of media, and its Alpaca form."""

    def messages(draw: Random) -> Row:
        marks = draw.randint(0, 4)
        said = spoken(draw, draw.choice((1, 2, 2, 4, 6)), marks, ("role", "content"), ("user", "assistant"))
        return {"messages": said, "images": [source(draw) for _ in range(_count(draw, marks, 0.05))]}

    def alpaca(draw: Random) -> Row:
        made: Row = {
            "instruction": text(draw),
            "input": draw.choice(("", phrase(draw), None)),
            "output": draw.choice((text(draw), text(draw), None)),
        }
        history = draw.choice(([], [[phrase(draw), phrase(draw)]] * draw.randint(1, 3), None, [["a"]], "x"))
        return {**made, "system": draw.choice(("", text(draw))), "history": history} if draw.random() < 0.6 else made

    return lines(draw, drawn(draw, [alpaca] if n % 3 == 2 else [messages], ROWS))


def qwen(draw: Random, n: int) -> Made:
    """Qwen's lists and folders of media, and pictures named in the text as Qwen-VL had them."""

    def row(draw: Random) -> Row:
        marks = draw.randint(1, 3)
        named: list[Any] = [f"p{draw.randrange(PICTURES)}.png" for _ in range(marks)]
        return {"conversations": spoken(draw, 2, marks), "image": named, "data_path": "media"}

    def video(draw: Random) -> Row:
        turn = [{"from": "human", "value": "<video>\n" + text(draw)}, {"from": "gpt", "value": phrase(draw)}]
        return {"video": source(draw, "video"), "conversations": turn}

    def in_text(draw: Random) -> Row:
        words = f"Picture 1: <img>{pictures(draw, 'png')()}</img>\n{phrase(draw)} <img>{pictures(draw, 'url')()}</img>"
        words = draw.choice((words, words, words + "<img>", "no picture", words + "<image>"))
        return {"conversations": [{"from": "user", "value": words}, {"from": "assistant", "value": phrase(draw)}]}

    return lines(draw, drawn(draw, ([row], [row, video], [in_text], [video])[n % 4], ROWS))


def drop_last(draw: Random, n: int) -> Made:
    """Chats whose closing message is the answer."""
    made = lines(
        draw, [{"messages": turns(draw, draw.randint(1, 6), picture_part if n % 2 else None)} for _ in range(ROWS // 2)]
    )
    words = ("rows.jsonl", "--drop-last-assistant")
    return made._replace(source={"dataset": {"path": "rows.jsonl", "drop_last_assistant": True}}, words=words)


def chat_tables(draw: Random, n: int) -> Made:
    """Chats in arrays of JSON, in tables of Parquet and beside rows of other kinds."""

    def row(draw: Random) -> Row:
        parts = [{"type": "image", "text": None}, {"type": "text", "text": phrase(draw)}]
        number = draw.randrange(PICTURES)
        made: Row = {
            "images": [{"bytes": png(number), "path": None}],
            "messages": [{"role": "user", "content": parts}],
            "answer": phrase(draw),
        }
        return made if n % 2 else {**made, "images": [f"media/p{number}.png"]}

    rows = drawn(draw, [row], ROWS // 2)
    if n % 2:
        return Made({}, "rows.parquet", parquet=rows)
    rows += [{"question": text(draw)}, {"messages": odd_value(draw)}] if n % 4 else []
    return Made({"rows.json": json_text(rows).encode()}, "rows.json")


KINDS = {
    function.__name__: function
    for function in (
        chats, long_chats, odd_chats, batch_lines, chat_columns, llava, sharegpt, llamafactory, qwen, drop_last, chat_tables,
    )
}  # fmt: skip
