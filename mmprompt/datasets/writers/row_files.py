"""Files of text: JSON lines, a JSON array, CSV, TSV, and the metadata of a folder."""

from __future__ import annotations

import csv
import json
from string import ascii_uppercase
from typing import TextIO

from mmprompt.datasets.media_columns import media_column
from mmprompt.datasets.sample import column_error
from mmprompt.datasets.utf8_text import is_broken
from mmprompt.datasets.writers.output_file import create_text
from mmprompt.errors import RowError, shown

Row = dict[str, object]


class JSONLines:
    """One JSON object a line."""

    def __init__(self, path: str) -> None:
        self._file = create_text(path)

    def write(self, row: Row) -> None:
        """Write a line."""
        self._file.write(json_text(row) + "\n")

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class JSONMessageLines(JSONLines):
    """A list of messages a line."""

    def write(self, row: Row) -> None:
        """Write the messages of a row."""
        self._file.write(json_text(row["messages"]) + "\n")


class JSONArray:
    """A JSON array, one element a line."""

    def __init__(self, path: str) -> None:
        self._file = create_text(path)
        self._next = "[\n"

    def write(self, row: Row) -> None:
        """Write an element."""
        text = json_text(row)
        self._file.write(self._next + text)
        self._next = ",\n"

    def close(self) -> None:
        """Close the array and the file."""
        self._file.write("\n]\n" if self._next == ",\n" else "[]\n")
        self._file.close()


def JSONRows(path: str) -> JSONLines | JSONArray:  # noqa: N802  # stands in a table of classes
    """Return JSON lines for a file ``.jsonl``, else a JSON array, the form of the training frameworks."""
    return JSONLines(path) if path.endswith((".jsonl", ".jsonl.gz", ".jsonl.zst")) else JSONArray(path)


class CSVFile:
    """A header, then cells. The first row sets the columns."""

    _delimiter = ","
    blanks = frozenset(("hint", "options"))
    """Columns whose empty cell is read as nothing, as that of a media column is."""

    def __init__(self, path: str) -> None:
        self._file: TextIO = create_text(path)
        self._writer = csv.writer(self._file, delimiter=self._delimiter, lineterminator="\n")
        self._header: list[str] | None = None

    def write(self, row: Row) -> None:
        """Write a row.

        Raises:
            RowError: it has other columns than the first, or a character that a cell cannot hold.
        """
        if self._header is None:
            self._header = list(row)
            self._writer.writerow(self._header)
        more = [name for name in row if name not in self._header]
        if more:
            raise RowError(f"the first row has no column {shown(more[0])}", "write --to jsonl", code="MM019")
        for name, cell in row.items():
            text = str(cell)
            if "\0" in text or "\r" in text or is_broken(text):
                what = f"a cell cannot hold a carriage return, a NUL or half a character, as {shown(name)} has"
                raise column_error(name, what, "write --to jsonl", "MM019")
        missing = [
            name for name in self._header if name not in row and name not in self.blanks and media_column(name) is None
        ]
        if missing:
            raise RowError(
                f"the row has no {shown(missing[0])}, which the first row has", "write --to jsonl", code="MM019"
            )
        self._writer.writerow([row.get(name, "") for name in self._header])

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class TSVFile(CSVFile):
    """A ``CSVFile`` with tabs."""

    _delimiter = "\t"


class VLMEvalKitFile(TSVFile):
    """The TSV of VLMEvalKit, where rows may have fewer choices than the first."""

    blanks = frozenset((*TSVFile.blanks, *ascii_uppercase))


class FolderMetadata(JSONLines):
    """``metadata.jsonl`` in a folder, beside the media that it names."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path}/metadata.jsonl")


def json_text(value: object) -> str:
    """Return a value as JSON.

    Raises:
        RowError: JSON cannot hold it.
    """
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise RowError(f"JSON cannot hold the row: {error}", "leave the column out", code="MM800") from None
    return json.dumps(value) if is_broken(text) else text
