"""The path rules of Windows as pure functions, which can be tested on any system."""

from __future__ import annotations

import ntpath
import re

_DEVICE = re.compile(r"(?:con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])\Z", re.IGNORECASE)


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
