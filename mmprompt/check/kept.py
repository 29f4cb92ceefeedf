"""What the store keeps of rows, media and fixes, and how far a check came."""

from __future__ import annotations

from typing import NamedTuple

APPLICATION = 0x6D6D636B
"""SQLite's number for the files that are ours."""

FORMAT = 1
"""SQLite's number for what stands in them: one more with each change of what is kept, here or in its JSON."""

SCHEMA = f"""
BEGIN;
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {FORMAT};
CREATE TABLE IF NOT EXISTS findings (row INTEGER, code TEXT, data TEXT);
CREATE TABLE IF NOT EXISTS samples (row INTEGER PRIMARY KEY, file TEXT, line INTEGER, id TEXT,
    question BLOB, sent BLOB, answer TEXT, shape TEXT, length INTEGER, choice INTEGER, requests INTEGER, size INTEGER);
CREATE TABLE IF NOT EXISTS against (file TEXT, line INTEGER, row INTEGER, sent BLOB);
CREATE TABLE IF NOT EXISTS media (row INTEGER, number INTEGER, modality TEXT, name TEXT, column_name TEXT,
    offset INTEGER, digest BLOB, cells BLOB, pixels INTEGER, media_type TEXT, size INTEGER, width INTEGER,
    height INTEGER, seconds REAL);
CREATE TABLE IF NOT EXISTS alike (row INTEGER, column_name TEXT, offset INTEGER, digest BLOB);
CREATE TABLE IF NOT EXISTS thumbnails (digest BLOB PRIMARY KEY, data BLOB);
CREATE INDEX IF NOT EXISTS media_of_row ON media (row);
CREATE INDEX IF NOT EXISTS findings_of_row ON findings (row);
CREATE TABLE IF NOT EXISTS fixes (row INTEGER, file TEXT, line INTEGER, code TEXT, column_name TEXT, value TEXT,
    safe INTEGER, old TEXT);
CREATE TABLE IF NOT EXISTS progress (signature TEXT, items INTEGER, rows INTEGER, finished INTEGER, codes TEXT,
    shared TEXT);
COMMIT;
"""


class SampleFacts(NamedTuple):
    """A row for the rules on the whole dataset.

    ``question`` and ``sent`` are digests: of the text that is asked, and of all texts and media that are sent. They
    are None if the row cannot be sent. ``answer`` and ``id`` are JSON. ``shape`` is a JSON object from column to
    the kind of its value. ``length`` is that of the question without blanks at its ends, None where no text can be
    asked. ``choice`` is the 0-based number of the answer among the choices, -1 if it is not among them, and None
    without choices. ``requests`` is how many the row makes, ``size`` their bytes.
    """

    row: int
    file: str | None
    line: int | None
    id: str
    question: bytes | None = None
    sent: bytes | None = None
    answer: str | None = None
    shape: str = "{}"
    length: int | None = None
    choice: int | None = None
    requests: int = 0
    size: int = 0


class MediumFacts(NamedTuple):
    """A medium for the rules on the whole dataset.

    ``digest`` is the SHA-256 of its bytes. ``cells`` and ``pixels`` are those of a picture that was decoded, None for
    other media: the colours of ``ImageContent.cells``, and width times height. ``size`` is in bytes.
    ``width``, ``height`` and ``seconds`` are None where the medium has none or was not decoded.
    """

    row: int
    number: int
    modality: str
    name: str
    column: str | None
    offset: int | None
    digest: bytes
    cells: bytes | None = None
    pixels: int | None = None
    media_type: str | None = None
    size: int = 0
    width: int | None = None
    height: int | None = None
    seconds: float | None = None


class KeptFix(NamedTuple):
    """A new value for a column of a row, or for the part ``old`` of it, which mends the finding ``code``."""

    row: int
    file: str | None
    line: int | None
    code: str
    column: str
    value: object
    safe: bool
    old: str | None = None


class Progress(NamedTuple):
    """How far a check came.

    ``items`` are the rows and errors that the dataset gave, ``rows`` those of them that are rows. ``codes`` are those
    of all that was found, told or not; ``shared`` what was told of media that many rows send, as code and message.
    """

    items: int = 0
    rows: int = 0
    finished: bool = False
    codes: frozenset[str] = frozenset()
    shared: frozenset[tuple[str, str]] = frozenset()
