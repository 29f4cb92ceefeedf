"""Rules on characters: texts that were decoded wrongly, and characters that no text needs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from mmprompt.check.rule import CheckedRow, Fix, Hit, RowText, row_rule
from mmprompt.datasets.likely_encoding import is_utf8
from mmprompt.errors import shown
from mmprompt.messages import TextPart

_AROUND = 12
"""Characters of the text before and after a fault that a message shows."""

_LATIN = {byte: bytes([byte]).decode("cp1252", "ignore") or chr(byte) for byte in range(0x80, 0x100)}
"""The characters that the bytes above ASCII are in cp1252, and in Latin-1 where cp1252 has none."""

_BYTES = {ord(character): bytes([byte]) for byte, character in _LATIN.items()}
_BYTES |= {byte: bytes([byte]) for byte in range(0x80, 0xA0)}
_NEXT = "[" + re.escape("".join([_LATIN[byte] for byte in range(0x80, 0xC0)])) + "\x80-\x9f]"
_MOJIBAKE = re.compile(
    f"(?:[ÂÃ]{_NEXT})+|(?:â{_NEXT}{{2}})+|(?:ð{_NEXT}{{3}})+|(?:[Ä-ß]{_NEXT}){{2,}}|(?:[à-ï]{_NEXT}{{2}}){{2,}}"
)
"""UTF-8 read as cp1252. Of rarer characters two in a row count: one may be an accent before a quotation mark."""

_CYRILLIC = {byte: bytes([byte]).decode("cp1251", "ignore") or chr(byte) for byte in range(0x80, 0xC0)}
_PAIR = "[РС][" + re.escape("".join(_CYRILLIC.values())) + "]"  # noqa: RUF001  # a letter in UTF-8, read as cp1251
_RUSSIAN, _RUSSIAN_PAIRS = re.compile(f"(?:{_PAIR}){{3,}}"), re.compile(f"(?:{_PAIR})+")
"""Three letters in a row are not meant so; in a text that has some, single ones are not either."""

_CHINESE = re.compile("[\xa1-\xff]{6,}")
"""What may be three characters or more of GBK that was read as cp1252 or Latin-1."""

_PAIRS = re.compile("(?:[\xa1-\xff]{2})+")
"""What may be GBK in a text that has some: single characters and words too."""

_COMMON = (*range(0xA1, 0xA4), *range(0xB0, 0xD8))
"""The first bytes of common signs and characters in GBK."""

_FIRST_LETTER = ord("À")
"""What stands before it in Latin-1 are signs, such as ½ and ³."""

_ABOUT = re.compile(
    r"mojibake|utf-?(?:8|16)|latin-?1|iso-?8859|cp-?125\d|windows-?125\d|\bunicode|\b(?:en|de)cod(?:e|ing)|charset"
    "|code ?page|乱码|编码|文字化け",
    re.IGNORECASE,
)
"""Words of a text that is about encodings, and may show what goes wrong with them."""

_TWICE_LOST = "锟斤拷"  # what two replacement characters become when UTF-8 is read as GBK
_REPLACEMENT = "�"
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_Meant = str | Callable[[re.Match[str]], str]


def _all_texts(row: CheckedRow) -> Iterator[RowText]:
    """Yield the texts of a row, the replies that it sends, and its answer."""
    yield from row.texts
    for message in row.sample.messages or ():
        if message.role == "assistant":
            yield from [RowText(None, part.text) for part in message.parts if isinstance(part, TextPart)]
    if isinstance(row.answer, str):
        yield RowText(row.task.output_column, row.answer)


def _around(text: str, start: int, end: int) -> str:
    before = "…" if start > _AROUND else ""
    after = "…" if end + _AROUND < len(text) else ""
    return shown(f"{before}{text[max(0, start - _AROUND) : end + _AROUND]}{after}")


def _meant(match: re.Match[str]) -> str:
    """Return what the text was before it was read as cp1252; the same text if it cannot have been UTF-8."""
    raw = b"".join([_BYTES[ord(character)] for character in match[0]])
    try:
        meant = raw.decode("utf-8")
    except UnicodeDecodeError:
        return match[0]
    return meant if all(character.isprintable() or character.isspace() for character in meant) else match[0]


def _from_cp1251(match: re.Match[str]) -> str:
    """Return what Cyrillic in UTF-8 was before it was read as cp1251."""
    return b"".join([b"\x98" if sign == "\x98" else sign.encode("cp1251") for sign in match[0]]).decode("utf-8")


def _from_gbk(match: re.Match[str]) -> str:
    """Return what GBK that was read as cp1252 says; the same text if it is not GBK."""
    try:
        return match[0].encode("latin-1").decode("gb2312")
    except UnicodeDecodeError:
        return match[0]


def _meant_in_gbk(match: re.Match[str]) -> str:
    """Return what the text was before its GBK was read as cp1252; the same text if it is a word, UTF-8, or rare."""
    raw, meant = match[0].encode("latin-1"), _from_gbk(match)
    found = [lead for lead in raw[::2] if lead in _COMMON]
    rare = 10 * len(found) < 9 * len(meant) or len(set(meant)) == 1
    signs_alone = max(raw) < _FIRST_LETTER
    return match[0] if rare or signs_alone or match[0].isalpha() or is_utf8(raw) else meant


_FORMS = (
    (_CHINESE, _meant_in_gbk, "GBK", (_PAIRS, _from_gbk)),
    (_MOJIBAKE, _meant, "UTF-8", (_MOJIBAKE, _meant)),
    (_RUSSIAN, _from_cp1251, "UTF-8", (_RUSSIAN_PAIRS, _from_cp1251)),
)
"""Where to look, what was meant there, the encoding, and how to mend a text in which some was found."""


def _is_shown(text: str, match: re.Match[str], meant_by: Callable[[re.Match[str]], str]) -> bool:
    """Return whether a text about encodings shows a fault on purpose: alone, or beside the word as it should be."""
    if _ABOUT.search(text) is None:
        return False
    start, end = match.span()
    while start and text[start - 1].isalnum() and match.start() - start < _AROUND:
        start -= 1
    while end < len(text) and text[end].isalnum() and end - match.end() < _AROUND:
        end += 1
    meant = text[start : match.start()] + meant_by(match) + text[match.end() : end]
    return (start, end) == match.span() or meant in text


@row_rule("MM005")
def mojibake(row: CheckedRow) -> Iterator[Hit]:
    """UTF-8 or GBK that was read as another encoding, such as Ã© for é."""
    mended: set[str] = set()
    for text in _all_texts(row):
        if text.text.isascii():
            continue
        for pattern, meant, encoding, mend in _FORMS:
            found = (match for match in pattern.finditer(text.text) if meant(match) != match[0])
            wrong = next((match for match in found if not _is_shown(text.text, match, meant)), None)
            if wrong is not None:
                what = f"{_around(text.text, *wrong.span())} holds {shown(wrong[0])}, which was {shown(meant(wrong))}"
                fix = _mended(row, text, *mend, mended)
                hint = f"read the source again as {encoding}"
                yield Hit(what, hint, text.column, text.at(wrong.start()), fix=fix)
                break
        else:
            yield from _twice_lost(text)


def _twice_lost(text: RowText) -> Iterator[Hit]:
    if (at := text.text.find(_TWICE_LOST)) >= 0:
        what = f"{_around(text.text, at, at + 3)} holds '{_TWICE_LOST}', the trace of characters that were lost"
        yield Hit(what, "read the source again in its own encoding", text.column, text.at(at))


def _mended(row: CheckedRow, text: RowText, wrong: re.Pattern[str], meant: _Meant, mended: set[str]) -> Fix | None:
    """Return the fix of a text: of one element of a list, or of its whole column unless that is ``mended`` already.

    There is none for an answer whose choice stands deeper in the row and stays wrong.
    """
    value = None if text.column is None else row.columns.get(text.column)
    if text.column is None or not isinstance(value, (str, list)):
        return None
    cells = [row.columns.get(column) for column in row.choice_columns]
    seen = [cell for cell in cells if isinstance(cell, str) or (isinstance(cell, list) and text.text in cell)]
    if text.text in row.choices and len(seen) < len(cells):
        return None
    if isinstance(value, list):
        return Fix(text.column, wrong.sub(meant, text.text), safe=False, old=text.text)
    if text.column in mended:
        return None
    mended.add(text.column)
    return Fix(text.column, wrong.sub(meant, value), safe=False)


@row_rule("MM020")
def replacement_character(row: CheckedRow) -> Iterator[Hit]:
    """The character that stands for bytes that could not be read."""
    for text in _all_texts(row):
        if (at := text.text.find(_REPLACEMENT)) >= 0:
            count = text.text.count(_REPLACEMENT)
            places = "" if count == 1 else f", and {count - 1} more"
            what = f"{_around(text.text, at, at + 1)} holds U+FFFD in place of a lost character{places}"
            yield Hit(what, "read the source again in its own encoding", text.column, text.at(at))


@row_rule("MM013")
def control_character(row: CheckedRow) -> Iterator[Hit]:
    """A control character other than tab and line end."""
    mended: set[str] = set()
    for text in _all_texts(row):
        if found := _CONTROL.search(text.text):
            fix = _mended(row, text, _CONTROL, "", mended)
            what = f"{_around(text.text, *found.span())} holds the control character U+{ord(found[0]):04X}"
            yield Hit(what, "remove it", text.column, text.at(found.start()), fix=fix)
