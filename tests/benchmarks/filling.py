"""Filling templates and splitting tags with one large value, against a join of strings."""

from __future__ import annotations

import base64
import random
from collections.abc import Callable
from functools import partial

from timing import Row, Timed, interleaved

from mmprompt import PromptTemplate, parse_segments

SIZE = 267 << 10
BAR = 2.0
LINEAR_BAR = 16.0  # ten times the text is ten times the work, and some more where it leaves the cache
ROUNDS = 2000

_HEAD, _MIDDLE, _TAIL = "Look at this:\n", "\nQuestion: ", "\nAnswer: "


def filling(*, repetitions: int = 9) -> list[Row]:
    """Fill a string and a dialogue, and split a tagged text, each at its size and at ten times that."""
    jobs: dict[str, Callable[[int], Callable[[], object]]] = {
        "PromptTemplate, string": _string,
        "PromptTemplate, dialogue": _dialogue,
        "parse_segments": _segments,
    }
    rows = []
    for name, job in jobs.items():
        base = {_string: _join, _dialogue: _join_dialogue, _segments: _split}[job]
        timed = interleaved(
            {
                "ours": _many(job(SIZE), ROUNDS),
                "base": _many(base(SIZE), ROUNDS),
                "ours, 10 times": _many(job(10 * SIZE), ROUNDS // 10),
                "base, 10 times": _many(base(10 * SIZE), ROUNDS // 10),
            },
            repetitions,
        )
        rows += _rows(name, timed)
    return rows


def _rows(name: str, timed: dict[str, Timed]) -> list[Row]:
    ours, base, longer, base_longer = (timed[k].best_cpu for k in ("ours", "base", "ours, 10 times", "base, 10 times"))
    slower, grows, base_grows = ours / base, 10 * longer / ours, 10 * base_longer / base
    per = f"{ours / ROUNDS * 1e6:.1f} us, base {base / ROUNDS * 1e6:.1f} us"
    return [
        Row(f"{name}, 267 KiB, time over base", f"{slower:.2f} ({per})", f"<= {BAR}", slower <= BAR),
        Row(
            f"{name}, time of ten times as much",
            f"{grows:.1f} (base {base_grows:.1f})",
            f"<= {LINEAR_BAR} or the base's",
            grows <= max(LINEAR_BAR, base_grows),
        ),
    ]


def _many(run: Callable[[], object], rounds: int) -> Callable[[], None]:
    def repeated() -> None:
        for _ in range(rounds):
            run()

    return repeated


def _value(size: int) -> str:
    return "iVBORw0KGgo{answer}" + "A<" * (size // 2 - 10)


def _string(size: int) -> Callable[[], object]:
    template = PromptTemplate(f"{_HEAD}{{image}}{_MIDDLE}{{question}}{_TAIL}{{answer}}")
    columns = {"image": _value(size), "question": "What is it?", "answer": "a cat"}
    return partial(template.generate_item, columns, output_field="answer")


def _dialogue(size: int) -> Callable[[], object]:
    rounds = [
        {"role": "HUMAN", "prompt": f"{_HEAD}{{image}}{_MIDDLE}{{question}}"},
        {"role": "BOT", "prompt": "{answer}"},
    ]
    template = PromptTemplate({"begin": "Answer shortly.", "round": rounds})
    columns = {"image": _value(size), "question": "What is it?", "answer": "a cat"}
    return partial(template.generate_item, columns, output_field="answer")


def _join(size: int) -> Callable[[], object]:
    value = _value(size)
    pieces = (_HEAD, value, _MIDDLE, "What is it?", _TAIL, "")
    return lambda: "".join(pieces)


def _join_dialogue(size: int) -> Callable[[], object]:
    pieces = (_HEAD, _value(size), _MIDDLE, "What is it?")
    return lambda: ["Answer shortly.", {"role": "HUMAN", "prompt": "".join(pieces)}, {"role": "BOT", "prompt": ""}]


def _segments(size: int) -> Callable[[], object]:
    return partial(parse_segments, _tagged(size))


def _split(size: int) -> Callable[[], object]:
    """Split at the terminator and cut off the start tags, without looking for tags inside."""
    text = _tagged(size)

    def split() -> list[tuple[str, str]]:
        image, question, _ = text.split("<AIS_CONTENT_TAG>")
        return [("image", image[len("<AIS_IMAGE_START>") :]), ("text", question[len("<AIS_TEXT_START>") :])]

    return split


def _tagged(size: int) -> str:
    value = base64.b64encode(b"\xff\xd8\xff" + random.Random(7).randbytes(size // 4 * 3)).decode("ascii")
    return f"<AIS_IMAGE_START>{value}<AIS_CONTENT_TAG><AIS_TEXT_START>What is it?<AIS_CONTENT_TAG>"
