"""The permission to read media, and its limits.

A string that names media is not permission to read it; a ``MediaPolicy`` is.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Union

from mmprompt.errors import PolicyError, nearest, shown

READ_ALSO = ("tiff", "avif")
"""Image formats that are decoded only if the caller names them: their decoders are large and rarely needed."""

PathName = Union[str, "os.PathLike[str]"]

MAX_BYTES = 64 << 20
MAX_PIXELS = 50_000_000
MAX_SIDE_PIXELS = 65_535
MAX_SECONDS = 3600.0
MAX_FRAMES = 100_000
MAX_REQUEST_BYTES = 512 << 20
MAX_REQUEST_MEDIA = 10_000
TIMEOUT = 30.0
ISOLATE = hasattr(os, "fork")
"""Whether decoders run in child processes by default: on Linux and macOS, which can limit a process."""

_PRESETS: dict[str, dict[str, Any]] = {
    "trusted": {
        "max_bytes": 2 << 30,
        "max_pixels": 500_000_000,
        "max_seconds": None,
        "max_frames": 10_000_000,
        "max_request_bytes": 4 << 30,
        "timeout": 600.0,
        "isolate": False,
    },
    "default": {},
    "hostile": {
        "max_bytes": 16 << 20,
        "max_pixels": 25_000_000,
        "max_seconds": 600.0,
        "max_frames": 20_000,
        "max_request_bytes": 64 << 20,
        "max_request_media": 256,
        "timeout": 10.0,
        "isolate": True,
    },
}


@dataclass(frozen=True, init=False)
class MediaPolicy:
    """The folders, hosts and sizes that a media reader keeps to. Immutable; compares by value; pickles.

    Args:
        roots: folders under which paths may be read. They are kept as given; the reader resolves them once and refuses
            one that is not a folder. Without a root no path is read.
        allow_domains: hosts that may be fetched from if ``fetch`` is true: ``example.com`` (that host, any port),
            ``*.example.com`` or ``.example.com`` (hosts below it, but not itself), each with a port if you like
            (``example.com:8080``). A host whose address is not public is refused, unless an entry is that very
            address with its port (``127.0.0.1:8000``, ``[fd00::5]:8080``) or ``localhost:8000``, which stands for
            both loopback addresses.
        max_bytes: the most bytes of one file or decoded source.
        max_pixels: the most pixels of one picture that is decoded.
        max_side_pixels: the most pixels of its longer side.
        max_seconds: the longest audio or video; None for no limit.
        max_frames: the most frames of one animation or video that are walked.
        max_request_bytes: the most bytes of all media of one request, as they go out: after changes, before base64. A
            file that is named twice counts twice.
        max_request_media: the most media of one request.
        timeout: seconds that one fetch or one decoder may take. In the process, a decoder is stopped between two reads
            of its file; a child process is ended at any time.
        fetch: whether http(s) URLs of ``allow_domains`` are fetched; other URLs go to the model as they are.
        read_also: image formats to read beside JPEG, PNG, WebP, GIF and BMP: ``"tiff"`` (first page), ``"avif"``.
        isolate: whether decoders run in child processes with limits on memory and time. The default on Linux and macOS.
            Without it, a hostile file may crash this process, fill its memory or hang it.
        files: single files that may be read, because the caller named them. See ``with_files``.

    Raises:
        PolicyError: a limit is not a positive number, a root or file is blank, or a domain is not a host name.
    """

    roots: tuple[str, ...]
    allow_domains: tuple[str, ...]
    max_bytes: int
    max_pixels: int
    max_side_pixels: int
    max_seconds: float | None
    max_frames: int
    max_request_bytes: int
    max_request_media: int
    timeout: float
    fetch: bool
    isolate: bool
    read_also: tuple[str, ...]
    files: tuple[str, ...]

    def __init__(
        self,
        roots: Iterable[PathName] | PathName = (),
        allow_domains: Iterable[str] | str = (),
        *,
        max_bytes: int = MAX_BYTES,
        max_pixels: int = MAX_PIXELS,
        max_side_pixels: int = MAX_SIDE_PIXELS,
        max_seconds: float | None = MAX_SECONDS,
        max_frames: int = MAX_FRAMES,
        max_request_bytes: int = MAX_REQUEST_BYTES,
        max_request_media: int = MAX_REQUEST_MEDIA,
        timeout: float = TIMEOUT,
        fetch: bool = False,
        isolate: bool = ISOLATE,
        read_also: Iterable[str] | str = (),
        files: Iterable[PathName] | PathName = (),
    ) -> None:
        for name, number, whole in (
            ("max_bytes", max_bytes, True),
            ("max_pixels", max_pixels, True),
            ("max_side_pixels", max_side_pixels, True),
            ("max_seconds", max_seconds, False),
            ("max_frames", max_frames, True),
            ("max_request_bytes", max_request_bytes, True),
            ("max_request_media", max_request_media, True),
            ("timeout", timeout, False),
        ):
            if number is not None or name != "max_seconds":
                _check_limit(name, number, whole=whole)
            object.__setattr__(self, name, number)
        for name, flag in (("fetch", fetch), ("isolate", isolate)):
            if not isinstance(flag, bool):
                raise PolicyError(f"{name} is {shown(flag)}", "give True or False")
            object.__setattr__(self, name, flag)
        formats = (read_also,) if isinstance(read_also, str) else tuple(read_also)
        for name in formats:
            if name not in READ_ALSO:
                raise PolicyError(f"unknown format {shown(name)} in read_also", nearest(name, READ_ALSO))
        object.__setattr__(self, "read_also", formats)
        object.__setattr__(self, "roots", _paths("root", roots))
        object.__setattr__(self, "files", _paths("file", files))
        hosts = (allow_domains,) if isinstance(allow_domains, str) else tuple(allow_domains)
        object.__setattr__(self, "allow_domains", _entries(hosts) if hosts else ())

    @classmethod
    def preset(cls, name: str, roots: Iterable[PathName] | PathName = (), **changes: Any) -> MediaPolicy:
        """Return the policy called ``name``, with the fields of ``changes`` set to other values.

        ``trusted`` is for your own data (large files, no limit on length); it decodes in this process, so a file made
        to crash, swell or hang a decoder does that to you. ``default`` equals ``MediaPolicy()``, and ``hostile`` is for
        data from strangers (lower limits).

        Raises:
            PolicyError: an unknown preset, an unknown field, or a bad value for one.
        """
        if name not in _PRESETS:
            raise PolicyError(f"unknown policy preset {shown(name)}", nearest(name, _PRESETS))
        for key in changes:
            if key not in cls.__dataclass_fields__:
                raise PolicyError(f"unknown field {shown(key)} of a policy", nearest(key, cls.__dataclass_fields__))
        return cls(roots, **{**_PRESETS[name], **changes})

    def with_files(self, *paths: PathName) -> MediaPolicy:
        """Return a policy that also allows these files: a path that the caller passes is permission to read it."""
        return replace(self, files=tuple(dict.fromkeys(self.files + _paths("file", paths))))


def _check_limit(name: str, number: object, *, whole: bool) -> None:
    kinds = (int,) if whole else (int, float)
    # bool is an int, and max_bytes=True is a mistake
    if isinstance(number, bool) or not isinstance(number, kinds) or not number > 0 or not math.isfinite(number):
        raise PolicyError(f"{name} is {shown(number)}", f"give a positive {'whole ' if whole else ''}number")


def _paths(what: str, paths: Iterable[PathName] | PathName) -> tuple[str, ...]:
    """Return the paths as strings; a single string is one path, not a sequence of letters."""
    given = (paths,) if isinstance(paths, (str, os.PathLike)) else tuple(paths)
    names = []
    for path in given:
        name = os.fspath(path) if isinstance(path, (str, os.PathLike)) else None
        if not isinstance(name, str) or not name.strip() or "\x00" in name:
            raise PolicyError(f"media {what} {shown(path)} is not a path", "give a folder or file name")
        names.append(name)
    return tuple(names)


def _entries(hosts: Iterable[object]) -> tuple[str, ...]:
    from mmprompt.media.fetch.hosts import host_entry  # noqa: PLC0415  # loads ipaddress, only where hosts are named

    return tuple(map(host_entry, hosts))


def limit_error(what: str, limit: str, code: str) -> PolicyError:
    """Return the error of something that passes a limit of the policy, whose field is called ``limit``."""
    return PolicyError(what, f"raise {limit} to allow it, or use --policy trusted", code=code)


_MOST_PIXELS = _PRESETS["trusted"]["max_pixels"]
RAISE_PIXELS = f"make it smaller, or drop the row; for data you trust, --policy trusted allows {_MOST_PIXELS} pixels"


def check_picture_size(what: str, width: int, height: int, policy: MediaPolicy) -> None:
    """Refuse a picture of more than ``max_pixels``, or with a side longer than ``max_side_pixels``.

    A side has its own limit because scaling takes about 50 bytes for each pixel of a side, however short the other
    side is.

    Args:
        what: the picture in words, such as ``"the PNG"``.
        width: as the header says.
        height: as the header says.
        policy: the limits.
    """
    size = f"{what} has {width} x {height} pixels, more than"
    if width * height > policy.max_pixels:
        hint = RAISE_PIXELS if max(width, height) <= policy.max_side_pixels else "make it smaller, or drop the row"
        raise PolicyError(f"{size} max_pixels ({policy.max_pixels})", hint, code="MM302")
    if max(width, height) > policy.max_side_pixels:
        hint = "make it smaller, or pass MediaPolicy(max_side_pixels=N) to allow it"
        raise PolicyError(f"{size} max_side_pixels ({policy.max_side_pixels}) on a side", hint, code="MM302")
