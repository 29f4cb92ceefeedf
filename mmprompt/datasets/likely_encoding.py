"""Names the likely encoding of text that is not UTF-8, from how common its characters are in each."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

_LOOKED_AT = 1 << 16
_RUNS = re.compile(rb"[\x80-\xff]+")
_LEAST = 0.7
"""The share of common characters below which no encoding is named."""

_SIGNS = bytes([*range(0x82, 0xC0)]).decode("cp1252", "ignore")
"""What Western texts hold beside letters."""


_PUNCTUATION = frozenset("“”‘’…—–·・ー～、。〈〉《》「」『』【】（），：；？！")  # noqa: RUF001  # as they are written
"""The signs that are common in Chinese, Japanese and Korean; a wrong encoding gives others."""


class _Candidate(NamedTuple):
    """An encoding, its name for people, and the share of ``text``, decoded from ``raw``, that is common in it."""

    codec: str
    name: str
    common: Callable[[str, bytes], float]


def likely_encoding(data: bytes) -> tuple[str, str] | None:
    """Return the codec and the name of the likely encoding of text.

    None if it is not clear, or if most lines that are not ASCII are UTF-8: then single rows are at fault.
    """
    data = data[:_LOOKED_AT]
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16", "UTF-16"
    if data.count(0) > len(data) // 4:
        little = data[1::2].count(0) > data[::2].count(0)
        return ("utf-16-le", "UTF-16") if little else ("utf-16-be", "UTF-16")
    lines = [line for line in data.split(b"\n") if not line.isascii()]
    broken = [line for line in lines if not is_utf8(line)]
    if not broken or 2 * len(broken) < len(lines):
        return None
    found = [(_share(candidate, broken), candidate) for candidate in _CANDIDATES]
    share, best = max(found, key=lambda scored: scored[0])
    return (best.codec, best.name) if share >= _LEAST else None


@lru_cache(maxsize=4)  # one file's head comes again with each of its rows
def _of_head(head: bytes) -> tuple[str, str] | None:
    """Return the likely encoding of the beginning of a file; two empty texts if most of it is UTF-8."""
    lines = [line for line in head.split(b"\n") if not line.isascii()]
    return ("", "") if 2 * sum(map(is_utf8, lines)) > len(lines) else likely_encoding(head)


def encoding_hint(row: bytes, head: bytes = b"") -> str:
    """Return what to do about a row that is not UTF-8; ``head`` is the beginning of its file."""
    found = _of_head(head[:_LOOKED_AT]) or likely_encoding(row)
    if found == ("", ""):
        return "write the row again as UTF-8, as the other rows are"
    if found is None:
        return "save the file as UTF-8, or name its encoding with --encoding NAME"
    return f"pass --encoding {found[0]} (the text looks like {found[1]}), or save the file as UTF-8"


def is_utf8(line: bytes) -> bool:
    """Return whether bytes are UTF-8."""
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _share(candidate: _Candidate, lines: list[bytes]) -> float:
    """Return the share of common characters of those lines that the encoding can be; 0 if most cannot."""
    read: list[bytes] = []
    texts: list[str] = []
    for line in lines:
        try:
            texts.append(line.decode(candidate.codec))
        except UnicodeDecodeError:  # the last line may be cut
            continue
        read.append(line)
    if len(read) < len(lines) - 1 or not read:
        return 0.0
    high = "".join([character for character in "".join(texts) if not character.isascii()])
    return candidate.common(high, b"\n".join(read)) if high else 0.0


def _of_leads(codec: str, *spans: tuple[int, int]) -> Callable[[str, bytes], float]:
    """Return a measure: the share of common signs, and of letters whose first byte in a codec lies in a span."""

    def is_common(character: str) -> bool:
        code = character.encode(codec, "ignore") if character.isalnum() else b""
        return len(code) > 1 and any(first <= code[0] <= last for first, last in spans)

    def common(text: str, _raw: bytes) -> float:
        return sum([character in _PUNCTUATION or is_common(character) for character in text]) / len(text)

    return common


_chinese = _of_leads("gb2312", (0xA1, 0xA3), (0xB0, 0xD7))
_hangul = _of_leads("euc_kr", (0xA1, 0xA3), (0xB0, 0xC8))


def _korean(text: str, raw: bytes) -> float:
    """Return the share of Hangul; as GBK it is Chinese that never goes beyond the first half of the common ones."""
    return _hangul(text, raw) + 0.01 if all("가" <= c <= "힣" or not c.isalpha() for c in text) else 0.0


def _japanese(text: str, raw: bytes) -> float:
    """Return the share of kana and common kanji, if there are kana."""
    kana = sum(["ぁ" <= character <= "ヿ" for character in text])
    return _of_leads("cp932", (0x81, 0x83), (0x88, 0x97))(text, raw) if 5 * kana > len(text) else 0.0


def _russian(text: str, raw: bytes) -> float:
    """Return the share of Russian letters, if they stand in words."""
    runs = _RUNS.findall(raw)
    words = sum([len(run) for run in runs if len(run) > 1])
    return sum(["\u0410" <= c <= "\u044f" for c in text]) / len(text) * words / sum(map(len, runs))


def _western(text: str, raw: bytes) -> float:
    """Return the share of accented letters and signs, if most of them stand among plain letters."""
    runs = _RUNS.findall(raw)
    alone = sum([len(run) <= 2 for run in runs]) / len(runs)
    return sum(["À" <= character <= "ÿ" or character in _SIGNS for character in text]) / len(text) * alone


_CANDIDATES = (
    _Candidate("gb18030", "GBK", _chinese),
    _Candidate("big5", "Big5", _of_leads("big5", (0xA1, 0xA3), (0xA4, 0xC6))),
    _Candidate("cp932", "Shift-JIS", _japanese),
    _Candidate("euc_kr", "EUC-KR", _korean),
    _Candidate("cp1251", "Windows-1251", _russian),
    _Candidate("cp1252", "Latin-1", _western),
)
