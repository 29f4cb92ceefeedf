"""Encodes objects as media files: PIL images, NumPy arrays, open binary files.

RGB and grey pictures become JPEG of quality 95 without chroma subsampling, pictures that JPEG cannot hold PNG, and
sound uncompressed WAV. ``Encoded.changes`` records what was done.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from mmprompt.errors import PolicyError, SourceError, shown
from mmprompt.errors.findings import Note
from mmprompt.media.audio.facts import HIGHEST_RATE, LOWEST_RATE, MOST_CHANNELS, is_sound_pair
from mmprompt.media.audio.wav import wav_file
from mmprompt.media.image.pixels import LONGEST_SIDE, encoded, held_by, in_mode
from mmprompt.media.library_errors import library_errors
from mmprompt.media.policy import MediaPolicy, check_picture_size, limit_error
from mmprompt.media.sandbox.after_fork import forget_after_fork
from mmprompt.media.type_check import A_MODALITY

if TYPE_CHECKING:
    from PIL.Image import Image

_COLOURS = frozenset(("CMYK", "YCbCr", "LAB", "HSV", "RGBX"))
_PLAIN = frozenset(("RGB", "L"))
_UNSCALED = frozenset(("I", "F"))
_WHITE = (255, 255, 255)
_ORIENTATION = 0x0112
_LOUD = 2.0
"""Float samples that reach it were whole numbers before; a little beyond 1 is usual after resampling."""


class Encoded(NamedTuple):
    """The bytes of an encoded object, the changes made, and findings."""

    data: bytes
    changes: tuple[str, ...] = ()
    findings: tuple[Note, ...] = ()


def encode_object(source: object, modality: str, policy: MediaPolicy) -> Encoded:
    """Return an object encoded as an image or audio file.

    Args:
        source: a PIL image, an array of pixels (height, width, and 3 or 4 channels; uint8), a pair (samples, rate),
            a mapping with ``array`` and ``sampling_rate``, or an open binary file, read from where it stands and left
            open.
        modality: ``image``, ``audio`` or ``video``; an open file may be any.
        policy: its ``max_bytes``, ``max_pixels`` and ``max_seconds`` hold.

    Raises:
        SourceError: the object cannot become this modality.
        PolicyError: it is larger or longer than the policy allows.
    """
    if callable(getattr(source, "read", None)):
        with _reading.lock:
            return Encoded(_read_stream(source, policy.max_bytes))
    if isinstance(source, Mapping):
        return _encode_sound(source["array"], source["sampling_rate"], modality, policy)
    if isinstance(source, (list, tuple)) and is_sound_pair(source):
        return _encode_sound(source[0], source[1], modality, policy)
    if modality != "image":
        hint = "give (samples, rate)"
        if modality == "video":  # a column of several media takes a list of frames for one of them
            hint = "give its frames as a list (in a list of media as a list inside it), or the bytes of a video file"
        raise SourceError(f"a value of type {type(source).__name__} is not {A_MODALITY[modality]}", hint, code="MM007")
    return encode_image(source, policy)


def encode_image(source: object, policy: MediaPolicy, *, frame: bool = False) -> Encoded:
    """Return a PIL image or an array of pixels as JPEG, or as PNG if JPEG cannot hold it; a ``frame`` always as JPEG.

    No rotation is applied: an EXIF orientation is a finding. Transparent pixels of a ``frame`` become white.
    """
    image = _as_image(source)
    mode = image.mode
    check_picture_size("the image", image.width, image.height, policy)
    if mode in _UNSCALED:
        raise SourceError(
            f"an image of mode {mode} fits no format", "convert it to RGB or L, suitably scaled", code="MM214"
        )
    hint = "open it anew, or give its path: its file may be cut or closed"
    with library_errors(f"the image of mode {mode}", "cannot be encoded", hint, "MM300"):
        image, findings = _own(image)
        clear = image.has_transparency_data
        if mode in _COLOURS:
            image = in_mode(image, "RGB", _WHITE)
        plain = image.mode in _PLAIN and not clear and max(image.size) <= LONGEST_SIDE["JPEG"]
        name = "JPEG" if frame or plain else "PNG"
        image = held_by(image, name, _WHITE)
        data = encoded(image, name, _QUALITY, **_OPTIONS[name])
    changes = [f"mode {mode} to {image.mode}"] if image.mode != mode else []
    if clear and frame:
        changes.append(f"alpha laid on {_WHITE}")
    return Encoded(data, (*changes, _HOW[name]), findings)


class _OneAtATime:
    """The lock for reading stateful objects: rows that threads render may hold the same object."""

    def __init__(self) -> None:
        self.forget()
        forget_after_fork(self)

    def forget(self) -> None:
        self.lock = threading.Lock()


_reading = _OneAtATime()


def _own(image: Image) -> tuple[Image, tuple[Note, ...]]:
    """Return a picture in memory, which other threads may read too, and findings."""
    if not hasattr(image, "fp"):
        return image, _findings(image)
    with _reading.lock:  # Pillow decodes it when it is first asked for, and looks for further frames by going there
        findings = _findings(image)
        image.load()
        if image.mode in _PLAIN and not getattr(image, "is_animated", False):
            return image, findings  # all of it is in memory now: the usual photo needs no copy
        return image.copy(), findings


_QUALITY = 95
_OPTIONS: dict[str, dict[str, Any]] = {"JPEG": {"subsampling": 0}, "PNG": {"compress_level": 1}}
_HOW = {"JPEG": f"encoded as JPEG, quality {_QUALITY}, no subsampling", "PNG": "encoded as PNG"}


def _as_image(source: object) -> Image:
    from PIL import Image as pillow  # noqa: N813, PLC0415  # heavy, and its module has the name of its class

    if isinstance(source, pillow.Image):
        return source
    shape: tuple[int, ...] = getattr(source, "shape", ())
    pixels = len(shape) == 2 or (len(shape) == 3 and shape[2] in (1, 3, 4))
    if not pixels or str(getattr(source, "dtype", "")) != "uint8" or 0 in shape:
        raise SourceError(
            f"an array of shape {shape} and type {getattr(source, 'dtype', None)} is not an image",
            "give uint8 pixels of height x width x 3",
            code="MM214",
        )
    array: Any = source
    return pillow.fromarray(array[:, :, 0] if shape[2:] == (1,) else array)


def _findings(image: Image) -> tuple[Note, ...]:
    found = []
    exif = image.info.get("exif")
    if exif and image.getexif().get(_ORIENTATION, 1) != 1:
        found.append(Note("MM303", "EXIF orientation is not applied"))
    if getattr(image, "is_animated", False):
        found.append(Note("MM306", "only the frame the image stands at is taken"))
    return tuple(found)


def _read_stream(stream: Any, limit: int) -> bytes:  # anything with a read method
    """Read an open binary file from where it stands, at most ``limit`` bytes; it stays open."""
    pieces: list[bytes] = []
    count = 0
    while count <= limit:
        with library_errors("the open file", "cannot be read", "open it anew"):
            piece = stream.read(min(limit + 1 - count, 1 << 20))
        if not isinstance(piece, (bytes, bytearray)):
            raise SourceError("the open file gives no bytes", "open it with mode 'rb'", code="MM205")
        if not piece:
            break
        pieces.append(bytes(piece))
        count += len(piece)
    if count > limit:
        raise limit_error(f"the open file is larger than max_bytes ({limit})", "max_bytes", "MM211")
    if not count:
        raise SourceError("the open file is empty, or read to its end", "seek to its start", code="MM202")
    return b"".join(pieces)


def _encode_sound(samples: object, rate: object, modality: str, policy: MediaPolicy) -> Encoded:
    if modality != "audio":
        raise SourceError(
            f"an array with a sampling rate is a sound, not {A_MODALITY[modality]}", "tag it as audio", code="MM213"
        )
    import numpy as np  # noqa: PLC0415  # heavy

    if isinstance(rate, bool) or not isinstance(rate, (int, float, np.integer, np.floating)):
        raise SourceError(f"the sampling rate is {shown(rate)}", "give a whole number of hertz", code="MM406")
    # the range first: it holds no NaN, which cannot be made whole
    if not LOWEST_RATE <= rate <= HIGHEST_RATE or rate != int(rate):
        hint = f"give a whole number of {LOWEST_RATE} to {HIGHEST_RATE} hertz"
        raise SourceError(f"the sampling rate is {shown(rate)}", hint, code="MM406")
    with library_errors("the list of samples", "is not an array", "give one array of samples"):
        array = np.asarray(samples)
    changes = []
    if array.ndim == 2 and array.shape[0] <= MOST_CHANNELS < array.shape[1]:
        array = array.T
        changes.append("channels first to channels last")
    channels = array.shape[1] if array.ndim == 2 else 1
    if array.ndim not in (1, 2) or not array.size or not 1 <= channels <= MOST_CHANNELS:
        raise SourceError(
            f"an array of shape {array.shape} is not a sound",
            f"give samples x channels, 1 to {MOST_CHANNELS} channels",
            code="MM406",
        )
    seconds = array.shape[0] / int(rate)
    if policy.max_seconds is not None and seconds > policy.max_seconds:
        raise PolicyError(
            f"the sound lasts {seconds:.1f} s, more than {policy.max_seconds} s", "raise max_seconds", code="MM405"
        )
    if array.nbytes > policy.max_bytes:
        raise PolicyError(
            f"the sound has {array.nbytes} bytes, more than {policy.max_bytes}", "raise max_bytes", code="MM211"
        )
    data, how = wav_file(array, int(rate))
    peak = float(max(array.max(), -array.min())) if array.dtype.kind == "f" else 0.0
    if peak < _LOUD:
        return Encoded(data, (*changes, how))
    what, hint = f"the float samples reach {peak:g}, and full scale is 1", "divide them by 32768, or give int16"
    return Encoded(data, (*changes, how), (Note("MM404", what, hint),))


def is_frames(source: object) -> bool:
    """True for frames of a video: an array of pictures, or a list that is not a pair of samples and rate."""
    if isinstance(source, (list, tuple)):
        return not is_sound_pair(source)
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(source, numpy.ndarray) and source.ndim == 4
