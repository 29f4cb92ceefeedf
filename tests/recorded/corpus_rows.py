"""Datasets of rows without a template: tagged texts, columns, choices, lists of media, tables and odd files."""

from __future__ import annotations

import base64
import csv
import io
import json
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from random import Random
from typing import Any

from corpus_media import PICTURES, jpeg, picture, pictures, png, source, wav
from corpus_values import (
    ID_KINDS,
    STYLES,
    Made,
    Pairs,
    Row,
    Token,
    drawn,
    json_lines,
    json_text,
    odd_text,
    odd_value,
    phrase,
    text,
    with_id,
)

ROWS = 56
"""Rows of a usual dataset."""

TAGS = {"t": "TEXT", "i": "IMAGE", "a": "AUDIO", "v": "VIDEO"}
MODALITIES = {"i": "image", "a": "audio", "v": "video"}
PATTERNS = (
    "it",
    "ti",
    "iit",
    "tit",
    "t",
    "i",
    "titit",
    "iiiii",
    "at",
    "vt",
    "tiav",
    "tt",
    "ttii",
    "iatvt",
    "itititititit",
)


def tagged(draw: Random, pattern: str, odd: float = 0.05) -> str:
    """Return a tagged text of segments: ``t`` text, ``i`` image, ``a`` audio, ``v`` video."""
    pieces = []
    for kind in pattern:
        value = text(draw, odd) if kind == "t" else str(source(draw, MODALITIES[kind], odd / 4))
        pieces.append(f"<AIS_{TAGS[kind]}_START>{value}<AIS_CONTENT_TAG>")
        if draw.random() < odd:
            pieces.append(draw.choice((" ", "\n", "loose text", " <b>", "\u3000")))
    whole = "".join(pieces)
    return whole.removesuffix("<AIS_CONTENT_TAG>") if draw.random() < odd else whole


def numbered(rows: Iterable[Row], kind: str, draw: Random) -> list[Row]:
    """Return rows with ids of one kind."""
    return [with_id(row, kind, number, draw) for number, row in enumerate(rows)]


def lines(draw: Random, rows: Iterable[Row], ids: str | None = None, **more: Any) -> Made:
    """Return a case of JSON lines."""
    written = numbered(rows, ids or draw.choice(("text", "number", "none", "mixed")), draw)
    return Made({"rows.jsonl": json_lines(written, draw)}, "rows.jsonl", **more)


def tags(draw: Random, n: int) -> Made:
    """Tagged texts in a few orders of segments."""
    patterns = draw.sample(PATTERNS, 1 + n % 6)
    extra = n % 3 == 1

    def row(draw: Random, pattern: str) -> Row:
        made: Row = {"content": tagged(draw, pattern), "answer": text(draw)}
        return {**made, "question": phrase(draw), "level": draw.randint(1, 3)} if extra else made

    return lines(draw, drawn(draw, [partial(row, pattern=p) for p in patterns], ROWS))


BROKEN_TAGS = (
    "<AIS_TEXT_START>one<AIS_TEXT_START>two<AIS_CONTENT_TAG>", "<AIS_IMAGE_START><AIS_CONTENT_TAG>", "<AIS_IMAGE_START>  <AIS_CONTENT_TAG>",
    "<AIS_TEXT_START><AIS_CONTENT_TAG>", "<AIS_CONTENT_TAG>", "x<AIS_CONTENT_TAG>y", "<AIS_IMAGE_START>media/p1.png<AIS_IMAGE_START>media/p2.png",
    "<ais_image_start>media/p1.png<AIS_CONTENT_TAG>", "<AIS_IMG_START>media/p1.png</AIS_CONTENT_TAG>", "<AIS_TEXT_START>a</AIS_CONTENT_TAG>",
    "<AIS_DOCUMENT_START>a.pdf<AIS_CONTENT_TAG>", "<AIS_IMAGE_START>media/p1.png", "text <AIS_IMAGE_START>media/p2.jpg<AIS_CONTENT_TAG> text",
    "<AIS_TEXT_START>a<AIS_CONTENT_TAG><AIS_CONTENT_TAG>", "< AIS_TEXT_START>a", "<AIS_TEXT_START>{question}<AIS_CONTENT_TAG>", "", " ", "plain",
    "<AIS_IMAGE_START>media/p1.png <AIS_TEXT_START>q<AIS_CONTENT_TAG>", "<AIS_IMAGE_START>\nmedia/p1.png\n<AIS_CONTENT_TAG>",
)  # fmt: skip


def broken_tags(draw: Random, n: int) -> Made:
    """Texts whose tags do not pair, are nearly tags, or hold nothing, among sound ones."""

    def odd(draw: Random) -> Row:
        found = draw.choice(BROKEN_TAGS)
        content: Any = found if draw.random() < 0.6 else tagged(draw, "it") + found
        if draw.random() < 0.15:
            content = draw.choice((None, 7, [], ["a"], {"text": "a"}, odd_value(draw)))
        return {"content": content, "answer": text(draw)}

    def apart(draw: Random) -> Row:
        return {"question": tagged(draw, "it"), "image": source(draw), "answer": tagged(draw, "t")}

    sound = [lambda draw, p=p: {"content": tagged(draw, p, 0), "answer": phrase(draw)} for p in ("it", "tit")]
    return lines(draw, drawn(draw, [*sound, odd, odd, *([apart] if n % 2 else [])], ROWS))


def flat(draw: Random, how: str, extra: Sequence[str] = (), odd: float = 0.1) -> Row:
    """Return a row of ``image`` and ``question``."""
    row: Row = {"image": pictures(draw, how)(), "question": text(draw, odd), "answer": text(draw, odd)}
    return {**row, **{name: text(draw, odd) for name in extra}}


def columns(draw: Random, n: int) -> Made:
    """Flat columns, as most benchmarks have them."""
    hows = (
        ("jpg",),
        ("url",),
        ("png", "url"),
        ("data",),
        ("base64",),
        ("jpg", "file"),
        ("url", "data", "png"),
        ("url",),
    )[n % 8]
    extra = (("category",), (), ("split", "source"), ("hint",))[n % 4]
    makers: list[Callable[[Random], Row]] = [partial(flat, how=how, extra=extra) for how in hows]
    makers += [lambda draw: {"question": text(draw), "answer": text(draw)}] if n % 2 else []
    makers += [lambda draw: dict(reversed(flat(draw, hows[0], extra).items()))] if n % 3 == 2 else []
    return lines(draw, drawn(draw, makers, ROWS), ID_KINDS[n % 3])


def ids(draw: Random, n: int) -> Made:
    """Ids of each kind."""
    makers = [partial(flat, how="url"), lambda draw: {"content": tagged(draw, "it")}, partial(flat, how="jpg", odd=0)]
    return lines(draw, drawn(draw, makers[: 1 + n % 3], ROWS), ID_KINDS[n % len(ID_KINDS)])


def wrong_types(draw: Random, n: int) -> Made:
    """Values of other types, nulls, blanks and nested values in every column."""
    names = ("image", "question", "answer", "hint", "options", "content", "audio", "id", "system", "A", "B")

    def odd(draw: Random) -> Row:
        row = {**flat(draw, "jpg"), **({"hint": phrase(draw), "options": ["a", "b"]} if n % 2 else {})}
        for name in draw.sample(names, draw.choice((1, 1, 1, 2, 3))):
            row[name] = odd_value(draw)
        return row

    return lines(draw, drawn(draw, [partial(flat, how="jpg"), odd, odd, odd], ROWS))


def texts(draw: Random, n: int) -> Made:
    """Every odd text in every column of text."""

    def odd(draw: Random) -> Row:
        row: Row = {
            "image": pictures(draw, "url")(),
            "hint": odd_text(draw),
            "question": odd_text(draw),
            "answer": odd_text(draw),
        }
        if n % 3 == 1:
            row["options"] = [odd_text(draw) for _ in range(draw.randint(2, 4))]
        return {k: v for k, v in row.items() if draw.random() < 0.9} if n % 2 else row

    return lines(draw, drawn(draw, [odd], ROWS))


CHOICE_FORMS = (
    "list",
    "columns",
    "choice_a",
    "mapping",
    "json",
    "python",
    "labelled",
    "lettered",
    "option_1",
    "numbers",
    "odd",
    "candidates",
)


def with_choices(draw: Random, form: str, most: int = 5) -> Row:
    """Return a row with choices in one of the forms in which datasets have them."""
    found = [text(draw, 0.1) for _ in range(draw.randint(2, most))]
    letters = "ABCDEFGH"
    row: Row = {"question": text(draw, 0.1)}
    if draw.random() < 0.4:
        row["hint"] = draw.choice((phrase(draw), phrase(draw), "", None, odd_text(draw)))
    forms: dict[str, Callable[[], Row]] = {
        "list": lambda: {"options": found},
        "candidates": lambda: {"candidates": found},
        "columns": lambda: dict(zip(letters, [*found, *draw.choice(([], ["", ""], [None], [float("nan")]))], strict=False)),
        "choice_a": lambda: {f"choice_{letter.lower()}": item for letter, item in zip(letters, found, strict=False)},
        "option_1": lambda: {f"option_{number}": item for number, item in enumerate(found, 1)},
        "mapping": lambda: {"options": dict(zip(letters, found, strict=False))},
        "labelled": lambda: {"choices": {"text": found, "label": [*letters[: len(found)]]}},
        "json": lambda: {"options": json.dumps(found)},
        "python": lambda: {"choices": repr(found)},
        "lettered": lambda: {"options": [f"{letters[at]}. {item}" for at, item in enumerate(found)]},
        "numbers": lambda: {"options": draw.choice(([1, 2.5, True], [0, 1], ["a", 2, None, ""], [10**20, -0.0]))},
        "odd": lambda: draw.choice(
            ({"options": odd_value(draw)}, {"A": "a", "C": "c"}, {"options": found, "A": "x", "B": "y"}, {"choices": "a, b"}, {"options": ["", "b"]})
        ),
    }  # fmt: skip
    answer = draw.choice(("A", "B", 0, 1, found[0], [found[-1]], None, ["A", "B"]))
    return {**row, **forms[form](), "answer": answer}


def choices(draw: Random, n: int) -> Made:
    """Choices in all their forms, with and without media and hints."""

    def row(draw: Random, form: str) -> Row:
        made = with_choices(draw, form, 8)
        return {"image": source(draw), **made} if (n + len(form)) % 2 else made

    forms = draw.sample(CHOICE_FORMS, 3) if n < 6 else list(CHOICE_FORMS)
    return lines(draw, drawn(draw, [partial(row, form=form) for form in forms], ROWS))


def image_lists(draw: Random, n: int) -> Made:
    """Lists of no to eight media."""
    name = ("images", "image", "images", "image_path")[n % 4]

    def row(draw: Random) -> Row:
        listed: list[Any] = [source(draw, odd=0.01 * (n % 4)) for _ in range(draw.randint(0, 8))]
        if listed and draw.random() < 0.2:
            listed += [listed[0]]  # the same file twice
        value: Any = (
            listed
            if draw.random() < 0.9
            else draw.choice((listed[:1], [[*listed]], json.dumps(listed), None, [None, *listed]))
        )
        return {name: value, "question": text(draw), "answer": phrase(draw)}

    def several(draw: Random) -> Row:
        return {f"image_{k}": source(draw) for k in range(1, draw.randint(2, 4))} | {"question": text(draw)}

    def mixed(draw: Random) -> Row:
        return {
            "audio": source(draw, "audio"),
            "images": [source(draw)],
            "video": [source(draw, "video")],
            "question": text(draw),
        }

    return lines(draw, drawn(draw, [row, row, *([several] if n % 2 else []), *([mixed] if n % 3 == 2 else [])], ROWS))


def media_sources(draw: Random, n: int) -> Made:
    """Every odd name of a medium, alone, in lists and in tags."""
    modality = ("image", "image", "audio", "video")[n % 4]

    def row(draw: Random) -> Row:
        return {modality: source(draw, modality, 0.6), "question": phrase(draw)}

    def in_list(draw: Random) -> Row:
        return {modality: [source(draw, modality, 0.3) for _ in range(draw.randint(1, 3))], "question": phrase(draw)}

    def in_tag(draw: Random) -> Row:
        value = str(source(draw, modality, 0.7))
        return {"content": f"<AIS_{modality.upper()}_START>{value}<AIS_CONTENT_TAG><AIS_TEXT_START>x<AIS_CONTENT_TAG>"}

    makers = ([row], [row, in_list], [in_tag], [row, in_list, in_tag])[n // 2 % 4]
    return lines(draw, drawn(draw, makers, ROWS))


def mixed(draw: Random, n: int) -> Made:
    """Rows of many shapes in one file."""
    makers: list[Callable[[Random], Row]] = [
        *(lambda draw, p=p: {"content": tagged(draw, p), "answer": text(draw)} for p in draw.sample(PATTERNS, 4)),
        *(partial(flat, how=how) for how in ("jpg", "url", "data")),
        *(partial(with_choices, form=form) for form in draw.sample(CHOICE_FORMS, 3)),
        lambda draw: {"images": [source(draw) for _ in range(draw.randint(0, 8))], "question": text(draw)},
        lambda draw: {"question": text(draw), "x": odd_value(draw)},
        lambda draw: {"audio": source(draw, "audio"), "question": text(draw), "answer": draw.randint(0, 9)},
    ]  # fmt: skip
    return lines(draw, drawn(draw, draw.sample(makers, 5 + n % 6), ROWS), ID_KINDS[n % len(ID_KINDS)])


def broken_lines(draw: Random, n: int) -> Made:
    """Files whose lines are cut, blank, no objects, not UTF-8, repeat keys, or are written in unusual ways."""

    def line(row: Row, draw: Random) -> Any:
        whole = json_text(row, draw.choice(STYLES)).encode()
        odd = (
            whole[: len(whole) // 2], b"", b"  ", b"[]", b"null", b'"text"', b"7", whole + b",", whole + whole, b"{}", b"\xff\xfe" + whole, b"{'a': 1}",
            whole.replace(b"question", b"qu\xe9stion"), b"\t" + whole + b"  \r", Pairs([*row.items(), ("question", "again")]), b'{"id": NaN}',
            whole.replace(b'": ', b'"\t:\n'.replace(b"\n", b" ")), b'{"question": "\x01raw"}', b'{"question": "\\ud800"}', b'{"question": "\\x"}',
            b'{"image": 01}', b"// comment", whole[:-1] + b',"n":{"a":' * 3 + b"1" + b"}" * 4, b'{"id":1,"question":"a"} {"id":2}', b"\x00",
            b'{"a":' * 300 + b"1" + b"}" * 300, b'{"question": ' + b"7" * 5000 + b"}",
        )  # fmt: skip
        return draw.choice(odd) if draw.random() < 0.4 else row

    rows = numbered(drawn(draw, [partial(flat, how="url"), partial(flat, how="jpg")], ROWS), "text", draw)
    data = json_lines([rows[0], *(line(row, draw) for row in rows[1:])], draw)
    data = b"\xef\xbb\xbf" + data if n % 4 == 1 else data
    return Made({"rows.jsonl": data.replace(b"\n", b"\r\n") if n % 4 == 2 else data}, "rows.jsonl")


def table(rows: Sequence[Row], delimiter: str = ",") -> bytes:
    """Return rows as a table of text."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, delimiter=delimiter)
    writer.writerow(names)
    for row in rows:
        cells = [row.get(name) for name in names]
        texts = [json.dumps(c) if isinstance(c, (list, dict)) else "" if c is None else str(c) for c in cells]
        writer.writerow([text.replace("\0", "") for text in texts])  # Python 3.10 writes no NUL
    return buffer.getvalue().encode("utf-8", "replace")


def tables(draw: Random, n: int) -> Made:
    """CSV and TSV: cells with lists, quotes and line breaks, missing cells, choices in columns."""
    makers: list[Callable[[Random], Row]] = [
        partial(flat, how=("url", "jpg")[n % 2]),
        lambda draw: {"image": [source(draw) for _ in range(draw.randint(0, 3))], "question": text(draw), "answer": phrase(draw)},
        partial(with_choices, form="columns"),
        lambda draw: {"content": tagged(draw, "it"), "answer": "NA"},
        lambda draw: {"image": draw.choice(("", "NaN", "media/p1.png; media/p2.png")), "question": draw.choice(("", "x", "007"))},
    ]  # fmt: skip
    rows = numbered(drawn(draw, makers[: 1 + n % 5], ROWS), ("text", "number", "none", "odd")[n % 4], draw)
    name, delimiter = (("rows.csv", ","), ("rows.tsv", "\t"), ("rows.csv", ";"), ("rows.csv", ","))[n % 4]
    data = table(rows, delimiter)
    return Made({name: data + b'short\n"unclosed, x\n' if n % 8 == 7 else data}, name)


def json_files(draw: Random, n: int) -> Made:
    """A JSON array, a list under a key, and an object of objects."""
    makers = [
        partial(flat, how="url"),
        partial(with_choices, form="list"),
        partial(flat, how="png"),
        lambda draw: {"x": odd_value(draw), "question": "q"},
    ]
    rows = numbered(drawn(draw, makers[: 1 + n % 4], ROWS), ID_KINDS[n % 3], draw)
    style = STYLES[n % 4]
    if n % 4 == 3:
        return Made({"rows.json": json_text({f"k{k}": row for k, row in enumerate(rows)}, style).encode()}, "rows.json")
    if n % 4 == 2:
        held = json_text({"info": {"n": 1}, "data": rows, "other": []}, style).encode()
        return Made(
            {"rows.json": held}, {"dataset": {"path": "rows.json", "key": "data"}}, ("rows.json", "--key", "data")
        )
    return Made({"rows.json": json_text(rows, style).encode()}, "rows.json")


def mm_custom(draw: Random, n: int) -> Made:
    """AISBench's JSON lines."""

    def row(draw: Random, modality: str) -> Row:
        path: Any = source(draw, modality, 0.02)
        path = [path, source(draw, modality)] if draw.random() < 0.3 else path
        made = {"type": modality, "path": path, "question": text(draw), "answer": text(draw)}
        if draw.random() < 0.05 * (n % 3):
            made[draw.choice(("type", "path", "question", "answer"))] = odd_value(draw)
        return made

    kinds = ("image", "image", "audio", "video")[: 1 + n % 4]
    return lines(draw, drawn(draw, [partial(row, modality=kind) for kind in kinds], ROWS))


def mmbench(draw: Random, n: int) -> Made:
    """VLMEvalKit's TSV: base64 and lists of it, the index of another row, choices, hints."""
    rows = []
    for number in range(ROWS):
        row = {
            "index": number,
            "image": picture(draw, draw.randrange(PICTURES), "base64"),
            **with_choices(draw, "columns"),
        }
        row["category"] = draw.choice(("NA", "007", "x"))
        if n % 4 > 1 and draw.random() < 0.3:
            row["image"] = base64.b64encode(png(number % 9, 12)).decode()  # too long for the index of a row
        how = draw.choice((0, 1, 2, 3, 4, 6, 9, 9, 9, 9, 9)) if n % 2 and number else 9
        row["image"] = (
            (0, "", "[" + repr(row["image"]) + "]", "NA", row["image"][:-4], "", 99)[how] if how < 8 else row["image"]
        )
        rows.append({**row, "image_path": f"media/p{number % 9}.png"} if n % 4 == 2 else row)
    return Made({"rows.tsv": table(rows, "\t")}, "rows.tsv")


def parquet_rows(draw: Random, n: int) -> Made:
    """Parquet with structs of bytes and paths, lists, numbers and nulls."""

    def row(draw: Random) -> Row:
        number = draw.randrange(PICTURES)
        held = {
            "bytes": draw.choice((png(number), jpeg(number), None if n % 3 else png(number))),
            "path": f"media/p{number}.png",
        }
        made: Row = {"image": held, "question": text(draw), "answer": phrase(draw)}
        if n % 4 == 1:
            made |= {
                "images": [held] * draw.randint(0, 3),
                "options": [phrase(draw) for _ in range(draw.randint(0, 4))],
            }
        if n % 4 == 2:
            made |= {
                "audio": {"bytes": wav(number % 8), "path": None},
                "score": draw.choice((None, 1.5, float("nan"))),
                "level": draw.choice((None, 3)),
            }
        return {**made, "image": picture(draw, number, "url")} if n % 4 == 3 else made

    rows = [
        {k: _no_surrogates(v) for k, v in row.items()}
        for row in numbered(drawn(draw, [row], ROWS), ("text", "number", "none")[n % 3], draw)
    ]
    return Made({}, "rows.parquet", parquet=rows)


def _no_surrogates(value: Any) -> Any:
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def python_rows(draw: Random, n: int) -> Made:
    """Rows given in Python: bytes, structs, tuples, segments and values that JSON does not know."""

    def plain(draw: Random) -> Row:
        number = draw.randrange(PICTURES)
        held = draw.choice(
            (
                png(number),
                bytearray(jpeg(number)),
                {"bytes": png(number), "path": "p.png"},
                memoryview(jpeg(number)),
                pictures(draw, "url")(),
            )
        )
        return {"image": held, "question": text(draw), "answer": phrase(draw)}

    def odd(draw: Random) -> Row:
        value = draw.choice((b"bytes", ("a", "b"), {"s"}, 1j, object, float("nan"), 10**40, range(3), odd_value(draw)))
        return {
            "image": [png(1), "media/p2.png"],
            "question": value if draw.random() < 0.5 else text(draw),
            "answer": value,
            "x": value,
        }

    makers = (
        [plain],
        [plain, odd],
        [plain, lambda draw: {"content": tagged(draw, "it")}],
        [plain, partial(with_choices, form="list"), odd],
    )[n % 4]
    rows = numbered(drawn(draw, makers, ROWS), ID_KINDS[n % len(ID_KINDS)], draw)
    return Made(
        {},
        {"dataset": {"rows": [{k: float(v) if isinstance(v, Token) else v for k, v in row.items()} for row in rows]}},
        (),
    )


KINDS = {
    function.__name__: function
    for function in (
        tags, broken_tags, columns, ids, wrong_types, texts, choices, image_lists, media_sources, mixed, broken_lines, tables, json_files,
        mm_custom, mmbench, parquet_rows, python_rows,
    )
}  # fmt: skip
