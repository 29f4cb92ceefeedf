"""Recognises the format of a dataset from the first bytes of its file."""

from __future__ import annotations

import json

from mmprompt.datasets import mm_custom, openai_chat
from mmprompt.errors import DatasetError, MMPromptError, shown
from mmprompt.targets.exact_json import loads

_BINARY = (
    (b"\x1f\x8b", "gzip"),
    (b"PK\x03\x04", "zip"),
    (b"\xd0\xcf\x11\xe0", "Microsoft Office"),
    (b"PAR1", "parquet"),
    (b"ARROW1", "arrow"),
    (b"\xff\xff\xff\xff", "arrow"),
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ", "xz"),
    (b"\x28\xb5\x2f\xfd", "zstandard"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
    (b"\x89PNG", "PNG"),
    (b"\xff\xd8\xff", "JPEG"),
    (b"%PDF", "PDF"),
    (b"SQLite format 3", "SQLite"),
)
_LOOKED_AT = 20  # lines: a file is not judged by one broken line


def binary_kind(head: bytes) -> str | None:
    """Return the kind of a file whose signature shows that it is not UTF-8 text, or None."""
    for signature, name in _BINARY:
        if head.startswith(signature):
            return name
    return "tar" if head[257:262] == b"ustar" else None


def as_text_hint(path: str, kind: str = "") -> str:
    """Return how to give the rows of a binary file."""
    if path.lower().endswith((".xlsx", ".xlsm", ".xls", ".ods")):
        return "save the sheet as CSV in UTF-8, and give that file"
    return "unpack it, and give the file of its rows" if kind == "zip" else "give a dataset as UTF-8 text"


def recognise(head: bytes, path: str) -> str:
    """Return the format of a file that begins with ``head``; the suffix of ``path`` decides where the text does not.

    Raises:
        DatasetError: the format is unknown; the message shows how the file begins.
    """
    text = head.removeprefix(b"\xef\xbb\xbf")
    suffix = path.lower().rpartition(".")[2]
    if b"\0" in text.partition(b"\n")[0]:
        from mmprompt.datasets.likely_encoding import likely_encoding  # noqa: PLC0415  # only for a fault

        if (found := likely_encoding(head)) and found[0].startswith("utf-16"):
            raise DatasetError(f"{shown(path)} is a {found[1]} file", f"pass --encoding {found[0]}", code="MM003")
        raise DatasetError(f"{shown(path)} is a binary file", as_text_hint(path))
    lines = [line for line in text.lstrip().split(b"\n") if line.strip()]
    if not lines:
        return suffix if suffix in ("csv", "tsv", "json", "parquet", "arrow") else "jsonl"
    first = lines[0].lstrip()[:1]
    if first == b"[":
        # JSON lines whose first line happens to be an array, or an array of rows
        return "jsonl" if len(lines) > 1 and isinstance(_row(lines[0]), list) else "json"
    if first == b"{":
        return _of_object(lines, suffix)
    return _of_text(lines, suffix, path)


def _row(line: bytes) -> object:
    try:
        return loads(line)
    except MMPromptError:
        return None


def _of_object(lines: list[bytes], suffix: str) -> str:
    for line in lines[:_LOOKED_AT]:
        columns = _row(line)
        if isinstance(columns, dict):
            if openai_chat.recognises(columns):
                return "openai"
            if mm_custom.recognises(columns):
                return "mm_custom"
            if suffix == "json" and len(lines) == 1 and _holds_rows(columns):
                return "json"
            return "jsonl"
    return "json" if lines[0].rstrip().endswith((b"{", b"[", b",")) else "jsonl"


def _holds_rows(columns: dict[str, object]) -> bool:
    """Return whether an object holds a list of rows, or is an object of objects."""
    values = list(columns.values())
    return any(map(_is_rows, values)) or (bool(values) and all(isinstance(value, dict) for value in values))


def _is_rows(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)


def _of_text(lines: list[bytes], suffix: str, path: str) -> str:
    if suffix in ("csv", "tsv"):
        return suffix
    if suffix in ("jsonl", "ndjson") or any(isinstance(_row(line), dict) for line in lines[:_LOOKED_AT]):
        return "jsonl"
    header = lines[0]
    if suffix != "json" and not _is_json(header):
        if b"\t" in header:
            return "tsv"
        if b"," in header:
            return "csv"
    begins = shown(header[:40].decode("utf-8", "replace").strip())
    raise DatasetError(
        f"{shown(path)} is in an unknown dataset format: it begins with {begins}", "name its format with --format"
    )


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True
