"""Texts, ids and other values of rows, ordinary and odd, and rows written as JSON. All are drawn from a ``Random``."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, NamedTuple, Union

Row = dict[str, Any]
Source = Union[str, Mapping[str, Any]]
"""A file or a mapping, as ``load_task`` takes it."""


class Made(NamedTuple):
    """A dataset or a task.

    ``files`` are written into the current folder. ``source`` is what Python is given, and ``words`` what the command line
    is given: by default ``source``, nothing if it is empty. ``parquet`` are the rows of ``rows.parquet``, and
    ``dataset`` is the second argument of ``load_task``. ``counts`` asks for a tokenizer, which counts words. ``needs``
    names a module without which the case says nothing. ``decodes`` says that media are encoded anew, by libraries whose
    bytes differ from release to release.
    """

    files: Mapping[str, bytes]
    source: Source
    words: Sequence[str] | None = None
    parquet: Sequence[Mapping[str, Any]] = ()
    dataset: Mapping[str, Any] | None = None
    counts: bool = False
    needs: str = ""
    decodes: bool = False


class Token(str):
    """A piece of JSON that is written as it stands, such as ``1e400``."""

    __slots__ = ()


class Pairs(list[Any]):
    """An object of JSON as pairs of key and value, so that a key may come twice."""


WORDS = [
    "What",
    "Which",
    "Where",
    "how",
    "many",
    "people",
    "is",
    "are",
    "the",
    "a",
    "red",
    "blue",
    "old",
    "cat",
    "dog",
    "cup",
    "on",
    "under",
    "table",
    "left",
    "of",
    "picture",
    "sound",
    "says",
    "does",
    "it",
    "show",
    "colour",
    "and",
    "then",
    "before",
    "after",
    "left",
    "right",
    "3",
    "7",
    "12",
    "price",
    "sign",
    "bus",
    "street,",
    "slowly",
    "是",
    "什么",
    "猫",
    "Größe",
    "ça",
    "русский",
]

ODD_TEXTS = (
    'He said "yes" and left\\right/up.', "tab\there\nnew line\r\nand\rreturn", "nul \x00 bell \x07 escape \x1b[31mred\x1b[0m",
    "\u2028line\u2029paragraph\x85next", "\ufeffmark of order", "e\u0301 é \U0001f600 \u200d\u202eright", "\x7f\x9fcontrols",
    "{question}", "{answer} {image} {options}", "{{question}} {{{hint}}}", "{unknown} {0} {} {a.b} {a!r} {question!s}",
    "$\\frac{a}{b} + \\sqrt{x}$", "{{ 7*7 }} {% raw %}{% endraw %} {# no #}", "%s %(question)s ${HOME} `id`",
    "<AIS_TEXT_START>inside<AIS_CONTENT_TAG>", "<AIS_IMAGE_START>media/p1.png<AIS_CONTENT_TAG> then",
    "<AIS_CONTENT_TAG> stray", "<ais_image_start>x</AIS_CONTENT_TAG>", "<AIS_IMG_START>near", "<AIS_TEXT_START>",
    "<image> in the text", "<image>", "<image 1> and <image 2>", "<video><audio>", "<|image|>", "<|im_end|>\n<|im_start|>system",
    "<s>[INST] <<SYS>> </s>", "[SEP] </E> <|user|> <|end|>", "User: hi\nAssistant: yes", "SYSTEM\nHUMAN BOT", "\n\n### Response:\n",
    "A. cat", "B) dog", "(C) bird", "null", "NaN", "None", "true", "7", "007", "1e3", "-0.0", "[1, 2]", "['a', 'b']",
    '{"a": "b"}', "a.jpg", "media/p1.png", "file://media/p2.png", 'https://example.com/a b.png?q={x}&y="z"', "data:image/png;base64,AAAA",
    "iVBORw0KGgo=", "/etc/hosts", "../p1.png", "<img>media/p1.png</img>", '<b>bold</b> &amp; "&lt;"', "  leading and trailing  ",
    "\nbreaks around\n", "\t", "a", "é", "💡", "]]>", "-- '; drop table rows", "C:\\path\\file.png", "=1+1", "@cmd", "#c",
)  # fmt: skip

SURROGATES = ("lone \ud800 high", "low \udfff alone", "pair \ud83d\ude00 written apart", "\udc80")

BLANKS = ("", " ", "\n", "\t \n", "\u00a0", "\u3000")

NUMBERS: tuple[Any, ...] = (
    0, 1, -1, 7, 42, 2**31, 2**53 + 1, -(2**63), 2**64, 10**30, 0.5, -0.0, 1.0, 1e-7, 1e22, 0.1 + 0.2, 123456789.125,
    Token("1e400"), Token("1.50"), Token("1E2"), Token("-0"), Token("100000000000000000000.0"), Token("0.1000000000000000055511151231257827"),
)  # fmt: skip
NO_NUMBERS = (float("nan"), float("inf"), float("-inf"))
NESTED: tuple[Any, ...] = (
    [], {}, [[]], [{}], {"a": None}, [None], [None, "x"], [1, "2", [3]], {"text": "x"}, {"a": {"b": [1, {"c": "d"}]}}, ["a", "b"],
    {"url": "media/p1.png"}, {"bytes": None, "path": "media/p1.png"}, {"type": "image"}, [{"type": "text", "text": "part"}], True, False,
)  # fmt: skip


def phrase(draw: Random, most: int = 8) -> str:
    """Return ordinary words."""
    return " ".join(draw.choices(WORDS, k=draw.randint(1, most)))


def odd_text(draw: Random) -> str:
    """Return one odd text, alone or within words; a few are long."""
    found = draw.choice(ODD_TEXTS)
    how = draw.randrange(12)
    if how < 5:
        return found
    if how < 8:
        return f"{phrase(draw)} {found} {phrase(draw, 3)}"
    if how < 10:
        return found + draw.choice(ODD_TEXTS)
    if how == 10:
        return draw.choice(BLANKS)
    return (found + " " + phrase(draw) + "\n") * draw.choice((20, 20, 20, 60, 60, 800))


def text(draw: Random, odd: float = 0.15) -> str:
    """Return a text that is odd with this chance."""
    return odd_text(draw) if draw.random() < odd else phrase(draw)


def odd_value(draw: Random) -> Any:
    """Return a value of any type."""
    how = draw.randrange(10)
    if how < 2:
        return None
    if how < 4:
        return draw.choice(NUMBERS)
    if how == 4:
        return draw.choice(NO_NUMBERS)
    if how < 7:
        return draw.choice(NESTED)
    if how == 7:
        return draw.choice(BLANKS)
    return draw.choice(SURROGATES) if draw.random() < 0.2 else odd_text(draw)


ID_KINDS = ("text", "number", "none", "float", "repeated", "odd", "mixed", "index", "question_id")


def with_id(row: Row, kind: str, number: int, draw: Random) -> Row:
    """Return a row with an id of this kind before its other columns, or last."""
    if kind == "none":
        return row
    if kind in ("index", "question_id"):
        return {kind: number if draw.random() < 0.8 else f"{kind}-{number}", **row}
    name: Any = f"q-{number}"
    if kind == "number":
        name = number
    elif kind == "float":
        name = draw.choice((number + 0.5, float(number), number / 3, Token(f"{number}e2")))
    elif kind == "repeated":
        name = draw.choice(("a", "b", 1, "1", 1.0, number))
    elif kind == "odd" or (kind == "mixed" and draw.random() < 0.4):
        name = odd_id(draw, number)
    elif kind == "mixed":
        name = draw.choice((number, f"q-{number}", None))
    return {**row, "id": name} if draw.random() < 0.1 else {"id": name, **row}


def odd_id(draw: Random, number: int) -> Any:
    """Return an id that is hard to write, to compare or to accept."""
    odd = (
        f'"{number}"', f"back\\slash {number}", f"line\n{number}", f"é{number}", "💡" * 30, f"\x00{number}", f"{{question}} {number}",
        10**25 + number, -number, Token(f"{number}.0"), Token("1e400"), f"\ud800{number}", "x" * 200 + str(number), "", " ", "\u2028",
        float("nan"), float("inf"), None, True, [number], {"n": number}, f"<AIS_TEXT_START>{number}", f"a/b:{number}", "NaN",
    )  # fmt: skip
    return draw.choice(odd)


class Style(NamedTuple):
    """How JSON is written: the marks between items and after keys, and whether in ASCII."""

    comma: str = ","
    colon: str = ":"
    ascii: bool = False


STYLES = (Style(), Style(", ", ": "), Style(", ", ": ", True), Style(" ,\t", " :  "), Style(ascii=True))


def json_text(value: Any, style: Style = STYLES[0]) -> str:
    """Return a value as JSON. Lone surrogates are written as escapes, numbers that are none as ``NaN`` and the like."""
    if isinstance(value, Token):
        return str(value)
    if isinstance(value, (Pairs, Mapping)):
        pairs = value if isinstance(value, Pairs) else value.items()
        inner = (f"{_quoted(str(key), style)}{style.colon}{json_text(item, style)}" for key, item in pairs)
        return "{" + style.comma.join(inner) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + style.comma.join(json_text(item, style) for item in value) + "]"
    return _quoted(value, style) if isinstance(value, str) else json.dumps(value)


def _quoted(value: str, style: Style) -> str:
    quoted = json.dumps(value, ensure_ascii=style.ascii)
    return quoted if style.ascii else re.sub("[\ud800-\udfff]", lambda found: f"\\u{ord(found[0]):04x}", quoted)


def json_lines(rows: Sequence[Any], draw: Random, style: Style | None = None) -> bytes:
    """Return rows as JSON lines, in one style or, without one, in a mixture; ``bytes`` stand as they are."""
    styles = [style] if style else draw.choice(([STYLES[0]], [STYLES[1]], [STYLES[2]], [*STYLES]))
    end = b"" if draw.random() < 0.1 else b"\n"
    lines = [row if isinstance(row, bytes) else json_text(row, draw.choice(styles)).encode() for row in rows]
    return b"\n".join(lines) + end


Maker = Callable[[Random], Row]


def drawn(draw: Random, makers: Sequence[Maker], count: int) -> list[Row]:
    """Return rows of several makers: in runs, shuffled, or with the others late among many of the first.

    What rows have in common can thus be learnt from the first and be wrong for a later one.
    """
    how = draw.choice(("runs", "shuffled", "shuffled", "late"))
    if how == "runs":
        chosen = [makers[at * len(makers) // count] for at in range(count)]
    elif how == "shuffled":
        chosen = draw.choices(makers, k=count)
    else:
        chosen = [makers[0] if at < count // 2 or draw.random() < 0.6 else draw.choice(makers) for at in range(count)]
    return [make(draw) for make in chosen]
