"""The errors of files that cannot be read. They show the name as the sample wrote it."""

from __future__ import annotations

import errno
import os
import re
import stat

from mmprompt.errors import MediaError, PolicyError, SourceError, Where, shown
from mmprompt.media.media_types import suffix_type
from mmprompt.media.windows_paths import is_drive_path, windows_fault

_HOW_TO_ADD = "--media-root DIR, media: {roots: [DIR]} or MediaPolicy(roots=[DIR])"
_SEPARATORS = re.compile(r"[,;|\s]+")
LONGEST_PATH = 4096
"""Bytes; Linux takes no longer one."""

_LONG_NAME = 300
"""Characters; file names are rarely as long."""


class MissingFileError(SourceError):
    """No such file under this root; another root may have it."""


def name_hint(path: str) -> str:
    """Return a hint about the name of a missing file, after a semicolon; empty if the name looks ordinary."""
    if "\\" in path:
        return "; write / for the backslashes"
    if path != path.strip():
        return "; it begins or ends with a blank"
    if path.startswith(('"', "'")):
        return "; take the quotes off"
    if path.startswith(("~", "$")):
        return f"; write the folder out: {path[0]} means nothing here"
    if len(path) > _LONG_NAME:
        return "; if it is base64, write nothing before or behind it"
    if len([name for name in _SEPARATORS.split(path) if suffix_type(name)]) > 1:
        return '; several names are a list: ["a.jpg", "b.jpg"]'
    return ""


def check_length(path: str, name: str) -> None:
    """Refuse a path of more than ``LONGEST_PATH`` bytes.

    Raises:
        SourceError: such a path, or one that cannot be written as bytes.
    """
    if len(path) <= LONGEST_PATH // 4:  # a character has at most four bytes
        return
    try:
        size = len(os.fsencode(path))
    except UnicodeEncodeError:
        raise not_a_name(name) from None
    if size > LONGEST_PATH:
        raise _too_long(name)


def check_foreign(path: str, name: str, *, on_windows: bool) -> None:
    """Refuse the paths of another system: drive letters and UNC paths, on Windows also devices and streams.

    Raises:
        SourceError: such a path.
    """
    if on_windows:
        fault = windows_fault(path)
        if fault:
            raise SourceError(f"{shown(name)} is {fault}", "name a file by a plain path")
    elif path[:2] == "\\\\":
        raise SourceError(f"{shown(name)} is a UNC path", "copy the file here and write a path relative to the root")
    elif is_drive_path(path):
        raise SourceError(f"{shown(name)} is a Windows path with a drive letter", "write it relative to the media root")


def no_root(name: str) -> PolicyError:
    """Return the error of a path where the policy allows none."""
    return PolicyError(
        f"no media root is set, so the path {shown(name)} is refused",
        f"name the folder that holds the media: {_HOW_TO_ADD}",
        Where(setting="media.roots"),
    )


def outside(name: str, *, linked: bool = False) -> PolicyError:
    """Return the error of a path outside the media roots; ``linked``: it is inside, but links lead out."""
    after = " after links" if linked else ""
    hint = f"move the file into a root, or allow its folder with {_HOW_TO_ADD}"
    return PolicyError(f"{shown(name)} is outside the media roots{after}", hint)


def too_large(name: str, limit: int) -> PolicyError:
    """Return the error of a file of more than ``limit`` bytes."""
    return PolicyError(f"{shown(name)} is larger than max_bytes ({limit})", "raise max_bytes to allow it")


def empty(name: str) -> SourceError:
    """Return the error of a file without bytes."""
    return SourceError(f"{shown(name)} is empty", "restore the file")


def not_a_name(name: str) -> SourceError:
    """Return the error of a string that cannot be a file name here."""
    what = "holds a NUL" if "\x00" in name else "cannot be a file name here"
    return SourceError(f"the path {shown(name)} {what}", "write the name of the file")


def _too_long(name: str) -> SourceError:
    hint = "write a shorter path; if this is base64, its bytes are in no known format"
    return SourceError(f"the path {shown(name)} is too long", hint)


def not_regular(mode: int, name: str) -> PolicyError:
    """Return the error of a directory, FIFO, socket or device."""
    kinds = {stat.S_IFDIR: "a directory", stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket"}
    kind = kinds.get(stat.S_IFMT(mode), "a device")
    return PolicyError(f"{shown(name)} is {kind}", "name a regular file")


def unreadable(error: OSError, name: str) -> MediaError:
    """Return our error for an error of the system, whose own message would show the whole path."""
    code = error.errno
    if code in (errno.ENOENT, errno.ENOTDIR):
        hint = f"check the name; relative paths begin at the media root; {_HOW_TO_ADD} adds one{name_hint(name)}"
        return MissingFileError(f"no such file: {shown(name)}", hint)
    if code in (errno.EACCES, errno.EPERM):
        return PolicyError(f"{shown(name)} may not be read: permission denied", "allow this user to read it")
    if code == errno.ENAMETOOLONG:
        return _too_long(name)
    if code == errno.ELOOP:
        return SourceError(f"{shown(name)} is a loop of links", "correct the links")
    if code in (errno.ENXIO, errno.ENODEV):
        return not_regular(stat.S_IFSOCK, name)
    if code == errno.EISDIR:
        return not_regular(stat.S_IFDIR, name)
    return SourceError(f"{shown(name)} cannot be read: {os.strerror(code or 0)}", "check the disk and the file")
