"""Croissant 1.0: ``rows.jsonl``, the files of its media, and ``croissant.json``, the metadata that describes both."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection, Iterable
from typing import NamedTuple
from urllib.parse import quote

from mmprompt.datasets.media_columns import media_column
from mmprompt.datasets.sample import column_error
from mmprompt.datasets.writers.output_file import create_text
from mmprompt.datasets.writers.row_files import JSONLines, json_text
from mmprompt.errors import shown
from mmprompt.errors.findings import Note
from mmprompt.media.media_types import KINDS

Row = dict[str, object]

UNKNOWN = Note(
    "MM006", "croissant.json has no license, creator, url and datePublished, which Croissant requires", "add them"
)
"""What the metadata lack, because no row says it."""

_ROWS = "rows.jsonl"
_CONTEXT: Row = {
    "@language": "en", "@vocab": "https://schema.org/", "citeAs": "cr:citeAs", "column": "cr:column",
    "conformsTo": "dct:conformsTo", "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"}, "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/", "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"}, "extract": "cr:extract", "field": "cr:field",
    "fileObject": "cr:fileObject", "fileProperty": "cr:fileProperty", "fileSet": "cr:fileSet", "format": "cr:format",
    "includes": "cr:includes", "isLiveDataset": "cr:isLiveDataset", "jsonPath": "cr:jsonPath", "key": "cr:key",
    "md5": "cr:md5", "parentField": "cr:parentField", "path": "cr:path", "rai": "http://mlcommons.org/croissant/RAI/",
    "recordSet": "cr:recordSet", "references": "cr:references", "regex": "cr:regex", "repeated": "cr:repeated",
    "replace": "cr:replace", "samplingRate": "cr:samplingRate", "sc": "https://schema.org/",
    "separator": "cr:separator", "source": "cr:source", "subField": "cr:subField", "transform": "cr:transform",
}  # fmt: skip
"""The context that the specification recommends."""

_DATA_TYPES = {str: "sc:Text", bool: "sc:Boolean", int: "sc:Integer", float: "sc:Float"}


class Values(NamedTuple):
    """What the values of a column are: their data types, and whether they are lists (None: there is no value yet)."""

    data_types: frozenset[str] = frozenset()
    lists: bool | None = None

    def field(self, column: str) -> Row:
        """Return the field of the record set that describes the column."""
        types = self.data_types - {"sc:Integer"} if "sc:Float" in self.data_types else self.data_types
        made: Row = {
            "@type": "cr:Field",
            "@id": f"rows/{quote(column, safe='')}",
            "name": column,
            "dataType": next(iter(types)) if len(types) == 1 else "sc:Text",
            "source": {"fileObject": {"@id": _ROWS}, "extract": {"column": column}},
        }
        return {**made, "repeated": True} if self.lists else made


class CroissantFolder(JSONLines):
    """A folder with the rows as JSON lines, and the metadata, which are written when the rows are complete."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path}/{_ROWS}")
        self._folder = path
        self._digest = hashlib.sha256()
        self._bytes = self._rows = 0
        self._columns: dict[str, Values] = {}
        self._media: dict[str, set[str]] = {}  # from suffix to media types

    def write(self, row: Row) -> None:
        """Write a row.

        Raises:
            RowError: a field of Croissant cannot hold one of its values.
        """
        columns = {name: _values(name, value, self._columns.get(name, Values())) for name, value in row.items()}
        line = json_text(row) + "\n"
        self._file.write(line)
        data = line.encode("utf-8")
        self._digest.update(data)
        self._bytes += len(data)
        self._rows += 1
        self._columns |= columns
        for column in row:
            if kind := media_column(column):
                for name in map(str, _listed(row[column])):
                    suffix = os.path.splitext(name)[1]
                    self._media.setdefault(suffix, set()).add(_media_type(kind[0], suffix))

    def close(self) -> None:
        """Close the file of rows, and write the metadata."""
        super().close()
        with create_text(f"{self._folder}/croissant.json") as file:
            json.dump(self._metadata(), file, ensure_ascii=False, indent=2)
            file.write("\n")

    def _metadata(self) -> Row:
        fields = [values.field(column) for column, values in self._columns.items()]
        return {
            "@context": _CONTEXT,
            "@type": "sc:Dataset",
            "name": os.path.basename(self._folder),
            "description": f"{self._rows} rows with the columns {', '.join(self._columns)}.",
            "conformsTo": "http://mlcommons.org/croissant/1.0",
            "distribution": [self._rows_file(), *map(_file_set, self._media, self._media.values())],
            "recordSet": [{"@type": "cr:RecordSet", "@id": "rows", "name": "rows", "field": fields}],
        }

    def _rows_file(self) -> Row:
        return {
            "@type": "cr:FileObject",
            "@id": _ROWS,
            "name": _ROWS,
            "contentUrl": _ROWS,
            "contentSize": f"{self._bytes} B",
            "encodingFormat": "application/jsonlines",
            "sha256": self._digest.hexdigest(),
        }


def _media_type(modality: str, suffix: str) -> str:
    """Return the media type of a file that a conversion wrote; it chose the suffix by the type."""
    types: Iterable[str | None] = (getattr(kind, modality) for kind in KINDS if suffix in kind.suffixes)
    return next(filter(None, types))


def _file_set(suffix: str, media_types: Collection[str]) -> Row:
    """Return the description of the media files with a suffix."""
    types = sorted(media_types)
    return {
        "@type": "cr:FileSet",
        "@id": f"media{suffix}",
        "name": f"media{suffix}",
        "description": "Each file has the first 32 digits of its SHA-256 as its name.",
        "encodingFormat": types[0] if len(types) == 1 else types,
        "includes": f"media/*{suffix}",
    }


def _values(column: str, value: object, before: Values) -> Values:
    """Return what the values of a column are, this one included.

    Raises:
        RowError: it is an object, or a list where others are none.
    """
    if value is None:
        return before
    lists = isinstance(value, list)
    if before.lists not in (None, lists):
        what = f"{shown(column)} is a list in some rows and a single value in others, and a field is one of the two"
        raise column_error(column, what, "write --to jsonl", "MM800")
    strange = next((item for item in _listed(value) if type(item) not in _DATA_TYPES), None)
    if strange is not None or None in _listed(value):
        what = f"a field cannot hold the {type(strange).__name__} of {shown(column)}"
        raise column_error(column, what, "write --to jsonl", "MM800")
    return Values(before.data_types | {_DATA_TYPES[type(item)] for item in _listed(value)}, lists)


def _listed(value: object) -> Iterable[object]:
    return value if isinstance(value, list) else [value]
