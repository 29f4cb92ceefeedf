"""Pillow's readers, one for each format: called by class, made strict, their errors replaced by ours.

They are not called through ``Image.open``: it checks sizes against a limit of the whole process, with a warning that a
thread cannot catch for itself; it offers a file to every loaded reader; and it takes some JPEGs for another format.
"""

from __future__ import annotations

import importlib
import io
import struct
from functools import cache
from typing import TYPE_CHECKING

from mmprompt.errors import MMPromptError, PolicyError, SourceError
from mmprompt.media.ffmpeg import TimedFile
from mmprompt.media.library_errors import library_errors
from mmprompt.media.policy import MediaPolicy

if TYPE_CHECKING:
    from PIL.ImageFile import ImageFile

_JPEG_PIECE = 1 << 18
"""Bytes of a JPEG that are decoded at once. Each further piece takes time: the decoder goes back to its last block."""

_NAMES = {"WEBP": "WebP", "GIF": "Gif", "BMP": "Bmp", "AVIF": "Avif"}
"""How Pillow writes the names of formats in those of its modules and classes."""


def read_header(data: bytes, name: str, policy: MediaPolicy) -> ImageFile:
    """Return Pillow's image of a file of the format ``name``, opened and not decoded.

    It can be read for the policy's ``timeout`` from now on; then the next read raises a PolicyError. Pillow reads files
    in pieces of 64 KiB (JPEG of 256 KiB, PNG and GIF block by block), but WebP and AVIF at once. Nobody looks at
    the time of a JPEG of one piece: a header of that size takes a quarter of a second at most.

    Raises:
        SourceError: the header is damaged, or this Pillow lacks the format (AVIF before 11.3).
        PolicyError: the picture is too large for Pillow itself, or the time is over.
    """
    try:
        reader = _reader(name)
    except ImportError:
        raise SourceError(
            f"this Pillow does not read {name}", "convert it to PNG or JPEG, or install a newer Pillow", code="MM214"
        ) from None
    with named(name):
        whole = name == "JPEG" and len(data) <= _JPEG_PIECE
        return reader(io.BytesIO(data) if whole else TimedFile(data, policy, f"the {name}"))


@cache
def _reader(name: str) -> type[ImageFile]:
    """Return the reader of a format; only its own module is loaded.

    Those of JPEG and PNG are made strict, because the process may have set ``LOAD_TRUNCATED_IMAGES``.
    """
    makers = {"JPEG": _whole_jpeg, "PNG": _whole_png, "TIFF": _stored_tiff}
    if name in makers:
        return makers[name]()
    word = _NAMES[name]
    found: type[ImageFile] = getattr(importlib.import_module(f"PIL.{word}ImagePlugin"), f"{word}ImageFile")
    return found


def _whole_jpeg() -> type[ImageFile]:
    from PIL import Image as pillow  # noqa: N813, PLC0415  # heavy
    from PIL import JpegImagePlugin  # noqa: PLC0415  # heavy

    class WholeJpeg(JpegImagePlugin.JpegImageFile):
        def load_read(self, read_bytes: int) -> bytes:
            return _more(self.fp.read(max(read_bytes, _JPEG_PIECE)) if self.fp else b"")

        def getexif(self) -> pillow.Exif:
            return pillow.Exif()  # opening looks for the resolution there, and damaged EXIF would be a warning

    return WholeJpeg


def _whole_png() -> type[ImageFile]:
    from PIL import PngImagePlugin  # noqa: PLC0415  # heavy

    class WholePng(PngImagePlugin.PngImageFile):
        def load_read(self, read_bytes: int) -> bytes:
            try:
                return _more(super().load_read(read_bytes))
            except (IndexError, struct.error):  # the head of a chunk is cut
                raise EOFError from None

    return WholePng


def _stored_tiff() -> type[ImageFile]:
    from PIL import TiffImagePlugin  # noqa: PLC0415  # heavy

    class StoredTiff(TiffImagePlugin.TiffImageFile):
        def load_end(self) -> None:
            """Leave the picture as it is stored. It is turned only if the user asks."""

    return StoredTiff


def _more(piece: bytes) -> bytes:
    if not piece:
        raise EOFError
    return piece


class named:  # noqa: N801  # used as a function; made by ``contextmanager`` it takes four times as long
    """A context that replaces Pillow's errors by ours."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        """Raise an error of ours in place of one of Pillow's."""
        if error is None or isinstance(error, MMPromptError):
            return
        from PIL.Image import DecompressionBombError  # noqa: PLC0415  # heavy

        what = f"the {self._name}"
        if isinstance(error, EOFError):
            cut = f"{what} is cut or damaged: it ends too early"
            raise SourceError(cut, "save or fetch it anew", code="MM301") from None
        if isinstance(error, DecompressionBombError):
            raise PolicyError(f"{what} has more pixels than Pillow takes", "make it smaller", code="MM302") from None
        with library_errors(what, "is cut or damaged", "save or fetch it anew", "MM300"):
            raise error
