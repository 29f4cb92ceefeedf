"""The errors of files that cannot be read, with the name as the sample wrote it, and the path rules of Windows."""

from __future__ import annotations

import errno
import ntpath
import os
import re
import stat

from mmprompt.errors import MediaError, PolicyError, SourceError, Where, shown
from mmprompt.media.base64_text import clean_head
from mmprompt.media.media_types import suffix_type
from mmprompt.media.policy import limit_error
from mmprompt.media.type_check import not_media

_DEVICE = re.compile(r"(?:con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])\Z", re.IGNORECASE)


_SHORTEST_BASE64 = 64
"""Characters. The names of files are shorter, or hold what base64 does not."""


def is_drive_path(path: str) -> bool:
    r"""Return whether a path begins with a drive letter and a slash, as in ``C:\x`` or ``C:/x``."""
    return path[1:2] == ":" and path[2:3] in ("\\", "/") and path[:1].isascii() and path[:1].isalpha()


def windows_fault(path: str) -> str:
    r"""Return what is wrong with a path on Windows, or an empty string.

    Refused are UNC and device paths (``\\server\share``, ``\\?\``, ``\\.\``), drive-relative paths (``C:x``), device
    names in any folder or file (``NUL``, ``com1.jpg``), and alternate streams (``a.jpg:hidden``).
    """
    if path[:2].replace("/", "\\") == "\\\\":
        return "a UNC or device path"
    rest = path
    if path[1:2] == ":":
        if not is_drive_path(path):
            return "a path relative to a drive, or an alternate stream"
        rest = path[2:]
    if ":" in rest:
        return "an alternate stream"
    for name in re.split(r"[\\/]", rest):
        # Windows leaves out trailing blanks and dots, and what follows the first dot of a device name
        if _DEVICE.match(name.partition(".")[0].rstrip(" ")):
            return "a device name"
    return ""


def windows_inside(real: str, folder: str) -> bool:
    r"""Return whether a real path lies under a real folder; case and ``\\?\`` do not count."""
    real, folder = (_plain(p) for p in (real, folder))
    return real.startswith(folder if folder.endswith("\\") else folder + "\\")


def windows_same(one: str, other: str) -> bool:
    """Return whether two real paths are the same."""
    return _plain(one) == _plain(other)


def _plain(path: str) -> str:
    folded = ntpath.normcase(path)
    if folded.startswith("\\\\?\\unc\\"):
        return "\\\\" + folded[8:]
    return folded.removeprefix("\\\\?\\")


_HOW_TO_ADD = "--media-root DIR, media: {roots: [DIR]} or MediaPolicy(roots=[DIR])"
LONGEST_PATH = 4096
"""Bytes; Linux takes no longer one."""

_LONG_NAME = 300
"""Characters; file names are rarely as long."""


class MissingFileError(SourceError):
    """No such file under this root; another root may have it."""

    code = "MM201"


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
    if len([name for name in re.split(r"[,;|\s]+", path) if suffix_type(name)]) > 1:
        return '; several names are a list: ["a.jpg", "b.jpg"]'
    return ""


def check_length(path: str, name: str) -> None:
    """Refuse a path of more than ``LONGEST_PATH`` bytes.

    Raises:
        SourceError: such a path, or one that cannot be written as bytes.
    """
    try:
        size = len(os.fsencode(path))
    except UnicodeEncodeError:
        raise not_a_name(name) from None
    if size > LONGEST_PATH:
        raise _too_long(name)


def check_foreign(path: str, name: str, *, on_windows: bool) -> None:
    """Refuse the paths of another system: drive letters and UNC paths, on Windows also devices and streams."""
    if on_windows:
        fault = windows_fault(path)
        if fault:
            raise SourceError(f"{shown(name)} is {fault}", "name a file by a plain path", code="MM212")
    elif path[:2] == "\\\\":
        raise SourceError(
            f"{shown(name)} is a UNC path", "copy the file here and write a path relative to the root", code="MM212"
        )
    elif is_drive_path(path):
        raise SourceError(
            f"{shown(name)} is a Windows path with a drive letter", "write it relative to the media root", code="MM212"
        )


def no_root() -> PolicyError:
    """Return the error of a path where the policy allows none. It is one error for all rows."""
    return PolicyError(
        "no media root is set, so no path is read",
        f"name the folder that holds the media: {_HOW_TO_ADD}",
        Where(setting="media.roots"),
        code="MM206",
    )


def outside(name: str, *, linked: bool = False) -> PolicyError:
    """Return the error of a path outside the media roots; ``linked``: it is inside, but links lead out."""
    after = " after links" if linked else ""
    hint = f"move the file into a root, or allow its folder with {_HOW_TO_ADD}"
    return PolicyError(f"{shown(name)} is outside the media roots{after}", hint, code="MM206")


def too_large(name: str, limit: int) -> PolicyError:
    """Return the error of a file of more than ``limit`` bytes."""
    return limit_error(f"{shown(name)} is larger than max_bytes ({limit})", "max_bytes", "MM211")


def empty(name: str) -> SourceError:
    """Return the error of a file without bytes."""
    return SourceError(f"{shown(name)} is empty", "restore the file", code="MM202")


def not_a_name(name: str) -> SourceError:
    """Return the error of a string that cannot be a file name here."""
    what = "holds a NUL" if "\x00" in name else "cannot be a file name here"
    return SourceError(f"the path {shown(name)} {what}", "write the name of the file", code="MM212")


def _as_base64(name: str) -> SourceError | None:
    """Return the error of a string that names no file and is text in base64, such as a page that came for a picture."""
    found = not_media(clean_head(name) or b"\x00") if len(name) >= _SHORTEST_BASE64 else None
    if found is None or found.code == "MM200":
        return None
    what = f"{len(name)} characters are {found.name} in base64"
    return SourceError(what, found.hint or "give the file itself", code=found.code)


def _too_long(name: str) -> SourceError:
    if wrong := _as_base64(name):
        return wrong
    hint = "write a shorter path; if this is base64, its bytes are in no known format"
    return SourceError(f"the path {shown(name)} is too long", hint, code="MM212")


def not_regular(mode: int, name: str) -> PolicyError:
    """Return the error of a directory, FIFO, socket or device."""
    kinds = {stat.S_IFDIR: "a directory", stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket"}
    kind = kinds.get(stat.S_IFMT(mode), "a device")
    return PolicyError(f"{shown(name)} is {kind}", "name a regular file", code="MM215")


def unreadable(error: OSError, name: str) -> MediaError:
    """Return our error for an error of the system, whose own message would show the whole path."""
    code = error.errno
    if code in (errno.ENOENT, errno.ENOTDIR):
        if wrong := _as_base64(name):
            return wrong
        start = "check the name; relative paths begin at a media root, as a rule the dataset's folder"
        hint = f"{start}; {_HOW_TO_ADD} adds one{name_hint(name)}"
        return MissingFileError(f"no such file: {shown(name)}", hint, Where(medium=name))
    if code in (errno.EACCES, errno.EPERM):
        return PolicyError(
            f"{shown(name)} may not be read: permission denied", "allow this user to read it", code="MM216"
        )
    if code == errno.ENAMETOOLONG:
        return _too_long(name)
    if code == errno.ELOOP:
        return SourceError(f"{shown(name)} is a loop of links", "correct the links", code="MM212")
    if code in (errno.ENXIO, errno.ENODEV):
        return not_regular(stat.S_IFSOCK, name)
    if code == errno.EISDIR:
        return not_regular(stat.S_IFDIR, name)
    return SourceError(
        f"{shown(name)} cannot be read: {os.strerror(code or 0)}", "check the disk and the file", code="MM216"
    )
