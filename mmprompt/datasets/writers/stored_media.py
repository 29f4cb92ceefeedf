"""How the media of a row are stored: as bytes in it, as files beside the output, or by their names."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from typing import Literal

from mmprompt.errors import DatasetError, RowError, nearest
from mmprompt.media.base64_text import encode_text
from mmprompt.media.media_types import KINDS
from mmprompt.media.sources import classify
from mmprompt.messages import MediaPart, MediaRef

STORES = ("embed", "files", "keep")
StoredAs = Literal["uri", "base64", "struct"]
"""How embedded bytes stand in a row: as a data URI, as bare base64, or as ``{"bytes": …, "path": …}``."""


class MediaStore:
    """Gives the value that stands for a medium in a written row.

    ``keeps_relative`` is True once a name was kept that begins at a folder of media.

    Args:
        output: the file that is written; files of media go to a folder beside it.
        store: one of ``STORES``.
        stored_as: the form of embedded bytes.
        read: reads what a row names, under a policy.
        write: creates a file of a name with these bytes.

    Raises:
        DatasetError: ``store`` is unknown.
    """

    def __init__(
        self,
        output: str,
        store: str,
        stored_as: StoredAs,
        read: Callable[[MediaRef], MediaPart | MediaRef],
        write: Callable[[str, bytes], None],
    ) -> None:
        if store not in STORES:
            raise DatasetError(f"unknown store '{store}'", nearest(store, STORES))
        self.store = store
        self.output = output
        self._stored_as = stored_as
        self._read = read
        self._write = write
        stem = os.path.basename(output).partition(".")[0] or "dataset"
        self._folder = f"{stem}_media"
        self._written: set[str] = set()
        self.keeps_relative = False

    def value(self, medium: MediaRef | MediaPart) -> object:
        """Return what stands for a medium.

        Raises:
            RowError: ``keep`` needs a name and the medium has none, or bytes are needed and it is a URL.
            MMPromptError: it cannot be read.
        """
        if self.store == "keep":
            return self._name(medium)
        part = self.read(medium)
        if self.store == "files":
            return self.file(part)
        if self._stored_as == "struct":
            return {"bytes": part.data, "path": f"{part.modality}{suffix_of(part)}"}
        text = encode_text(part.data)
        return text if self._stored_as == "base64" else f"data:{part.media_type};base64,{text}"

    def read(self, medium: MediaRef | MediaPart) -> MediaPart:
        """Return a medium with its bytes.

        Raises:
            RowError: it is a URL, which is not fetched, or a video of single frames.
        """
        part = medium if isinstance(medium, MediaPart) else self._read(medium)
        if not isinstance(part, MediaPart):
            raise RowError("the medium is a URL, which is not fetched", "keep names: --store keep", code="MM218")
        if part.frames:
            raise RowError("a video of single frames has no file", "keep names: --store keep", code="MM800")
        return part

    def file(self, part: MediaPart, folder: str | None = None) -> str:
        """Write the bytes of a medium to a file, once, and return its name; equal bytes share one file."""
        within = self._folder if folder is None else folder
        name = f"{hashlib.sha256(part.data).hexdigest()[:32]}{suffix_of(part)}"
        path = f"{within}/{name}" if within else name
        if path not in self._written:
            self._write(path, part.data)
            self._written.add(path)
        return path

    def _name(self, medium: MediaRef | MediaPart) -> str:
        source = medium.source if isinstance(medium, MediaRef) else None
        if isinstance(source, Mapping) and source.get("bytes") is None:
            source = source.get("path")
        if not isinstance(source, str) or classify(source).kind == "object":
            hint = "write its bytes: --store embed, or --store files"
            raise RowError(
                f"the row holds the bytes of its {medium.modality}, which have no name to keep", hint, code="MM800"
            )
        self.keeps_relative |= classify(source).kind == "path" and not os.path.isabs(source)
        return source


_SUFFIXES = {media_type: kind.suffixes[0] for kind in reversed(KINDS) for media_type in kind[1:4] if media_type}


def suffix_of(part: MediaPart) -> str:
    """Return the suffix of a file with this medium."""
    return _SUFFIXES[part.media_type]
