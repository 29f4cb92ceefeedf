"""Guarded reading of files: open first, then check the descriptor.

Links and renames can change where a path leads between a check and an open. So the file is opened first, without side
effects, and the *descriptor* is checked: it must be a regular file whose real path lies under a root. Absolute paths
and paths with ``..`` are checked before the open as well, so that no device outside the roots is ever opened. A hard
link cannot be distinguished from an ordinary file.

Where the kernel opens a path without following any link, the real path is known and need not be asked for.
"""

from __future__ import annotations

import os
import sys

from mmprompt.errors import PolicyError, shown
from mmprompt.media.file_errors import (
    LONGEST_PATH,
    MissingFileError,
    check_foreign,
    check_length,
    empty,
    no_root,
    not_a_name,
    not_regular,
    outside,
    too_large,
    unreadable,
    windows_inside,
    windows_same,
)
from mmprompt.media.outputs import REPLACED, refuse_replaced
from mmprompt.media.policy import MediaPolicy
from mmprompt.media.real_path import PLATFORM, blobs_folder, descriptor_path, linkless_open

WINDOWS = os.name == "nt"
HEAD_BYTES = 4096
"""How many bytes are read to recognise a format."""

_FLAGS = os.O_RDONLY
for _name in ("O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY", "O_NOINHERIT"):
    _FLAGS |= getattr(os, _name, 0)
_CHUNK = 1 << 16

_FILES_BEFORE = 500
"""After how many files a call that takes time to load pays off."""

_MOST_MISSES = 64
"""How many files in a row may lie behind links, where the call only takes time, until it is given up."""

_FILE_TYPE, _REGULAR = 0o170000, 0o100000
_OUTPUT = "a medium that the rows name"
_LONG_PATH = LONGEST_PATH // 4  # a character has at most four bytes

OpenFile = tuple[int, int, str]
"""An open regular file that the policy allows: its descriptor, its size as stated, and the path that was opened."""


class GuardedFiles:
    """Reads files under the roots of a policy, and no others. Keeps no file open; safe to share between threads.

    The roots are resolved once, when it is made.

    Raises:
        PolicyError: a root is not a folder, or cannot be opened.
    """

    __slots__ = (
        "_blobs",
        "_files",
        "_judged",
        "_limit",
        "_linkless",
        "_only_root",
        "_prefixes",
        "_real_files",
        "_written",
    )

    def __init__(self, policy: MediaPolicy) -> None:
        real_roots = [_real_root(root) for root in policy.roots]
        self._limit = policy.max_bytes
        self._prefixes = tuple(_with_slash(root) for root in real_roots)
        absolute = [_with_slash(os.path.abspath(root)) for root in policy.roots]
        self._written = tuple(dict.fromkeys((*self._prefixes, *absolute)))
        self._blobs = tuple(filter(None, map(blobs_folder, self._prefixes)))
        self._only_root = self._prefixes[0] if len(self._prefixes) == 1 and not policy.files and not WINDOWS else ""
        self._files = {file: os.path.abspath(file) for file in policy.files}
        self._real_files = frozenset(map(os.path.realpath, policy.files))
        self._linkless = linkless_open() if "ctypes" in sys.modules else None
        self._judged = 0 if self._linkless is None else _FILES_BEFORE

    def read(self, path: str, name: str = "") -> bytes:
        """Return the bytes of a file.

        Args:
            path: absolute, or relative to the first root that has it.
            name: what errors call the file; by default its path.

        Raises:
            SourceError: the file is missing or empty, or the path belongs to another system (drive letter, UNC).
            PolicyError: the file is outside the roots, not regular, too large, or not readable for this user.
        """
        root, linkless = self._only_root, self._linkless
        if (
            linkless is not None
            and root
            and not (path[:1] == "/" or ":" in path or "\\" in path or ".." in path or len(path) > _LONG_PATH)
            and (descriptor := linkless(root + path)) >= 0
        ):  # nearly every file; what is wrong with one is found below
            try:
                status = os.fstat(descriptor)
                size = status.st_size
                taken = REPLACED and (status.st_dev, status.st_ino) in REPLACED  # it is refused below
                if status.st_mode & _FILE_TYPE == _REGULAR and 0 < size <= self._limit and not taken:
                    data = os.read(descriptor, size + 1)
                    if len(data) == size:
                        self._judged = _FILES_BEFORE
                        return data
            except OSError:
                pass
            finally:
                os.close(descriptor)
        name = name or path
        descriptor, size, _ = self._open(path, name)
        try:
            if 0 < size <= self._limit:
                # one byte more than stated: a full read would mean that the file has grown
                data = os.read(descriptor, size + 1)
                if len(data) == size:
                    return data
                return self._rest(descriptor, data, name)
            return self._rest(descriptor, b"", name, size)
        except OSError as error:
            raise unreadable(error, name) from None
        finally:
            os.close(descriptor)

    def head(self, path: str, name: str = "") -> tuple[bytes, str]:
        """Return the first ``HEAD_BYTES`` bytes of a file and its absolute path; otherwise as ``read``."""
        name = name or path
        descriptor, size, full = self._open(path, name)
        try:
            if size > self._limit:
                raise too_large(name, self._limit)
            data = os.read(descriptor, HEAD_BYTES)
        except OSError as error:
            raise unreadable(error, name) from None
        finally:
            os.close(descriptor)
        if not data:
            raise empty(name)
        return data, full

    def descriptor(self, path: str) -> int:
        """Return a descriptor of a file, which the caller closes; otherwise as ``read``."""
        return self._open(path, path)[0]

    def _open(self, path: str, name: str) -> OpenFile:
        if len(path) > _LONG_PATH:
            check_length(path, name)  # first: realpath takes time that grows with the square of the length
        if self._only_root and not (path[:1] == "/" or ":" in path or "\\" in path or ".." in path):
            return self._try_open(self._only_root + path, name)
        check_foreign(path, name, on_windows=WINDOWS)
        if not self._prefixes and not self._files:
            raise no_root()
        if os.path.isabs(path) or ".." in path:
            full = self._allowed_path(path, name)
            return (self._try_open if full.startswith(self._prefixes) else self._open_judged)(full, name)
        missing: MissingFileError | None = None
        for prefix in self._prefixes:
            try:
                return self._try_open(prefix + path, name)
            except MissingFileError as error:
                missing = error
        if path in self._files:
            return self._open_judged(self._files[path], name)
        raise missing or outside(name)

    def _allowed_path(self, path: str, name: str) -> str:
        """Return the path to open for one that is absolute or holds ``..``; it is checked before the open."""
        if os.path.isabs(path) and ".." not in path and path.startswith(self._written):
            return path
        missing = ""
        for prefix in self._prefixes or ("",):
            try:
                real = os.path.realpath(os.path.join(prefix, path))
            except (OSError, ValueError):
                raise not_a_name(name) from None
            if self._allows(real):
                if os.path.lexists(real):
                    return real
                missing = real
        if not missing:
            raise outside(name)
        return missing

    def _allows(self, real: str) -> bool:
        """Return whether a real path is under a root, directly in the blobs beside it, or named by the caller."""
        if real.startswith(self._prefixes) or real in self._real_files:
            return True
        if WINDOWS:
            return any(windows_inside(real, p) for p in self._prefixes) or any(
                windows_same(real, f) for f in self._real_files
            )
        return any(real.startswith(blobs) and "/" not in real[len(blobs) :] for blobs in self._blobs)

    def _try_open(self, full: str, name: str) -> OpenFile:
        """Open ``full``, which begins with a real root; errors call the file ``name``."""
        linkless = self._linkless
        if linkless is None or (descriptor := linkless(full)) < 0:
            return self._open_judged(full, name)
        self._judged = _FILES_BEFORE
        try:
            status = os.fstat(descriptor)
            refuse_replaced(status, _OUTPUT)
            if status.st_mode & _FILE_TYPE == _REGULAR:
                return descriptor, status.st_size, full
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        raise not_regular(status.st_mode, name)

    def _open_judged(self, full: str, name: str) -> OpenFile:
        """Open ``full``, and refuse a file that is not regular or not under a root; errors call it ``name``."""
        before = self._resolved_before(full, name) if WINDOWS else ""
        try:
            descriptor = os.open(full, _FLAGS)
        except OSError as error:
            raise unreadable(error, name) from None
        except ValueError:
            raise not_a_name(name) from None
        try:
            status = os.fstat(descriptor)
            refuse_replaced(status, _OUTPUT)
            regular = status.st_mode & _FILE_TYPE == _REGULAR
            real = descriptor_path(descriptor, status, full) if regular else ""
            inside = real.startswith(self._prefixes) or self._allows(real)  # the first alone for nearly every file
            self._judged += 1
            if self._judged == _FILES_BEFORE:
                self._linkless = linkless_open()
            elif self._judged == _FILES_BEFORE + _MOST_MISSES:
                self._linkless = None
        except BaseException:
            os.close(descriptor)
            raise
        if not regular or not inside or (before and not windows_same(before, real)):
            os.close(descriptor)
            raise outside(name, linked=True) if regular else not_regular(status.st_mode, name)
        return descriptor, status.st_size, full

    def _resolved_before(self, full: str, name: str) -> str:
        """Return the real path, checked before the open: on Windows a descriptor does not show its path."""
        real = os.path.realpath(full)
        if not self._allows(real):
            raise outside(name, linked=True)
        return real

    def _rest(self, descriptor: int, data: bytes, name: str, stated: int = 0) -> bytes:
        """Read the rest of the file; the limit counts the bytes read, not the size that ``fstat`` states."""
        pieces = [data]
        count = max(len(data), stated)
        while count <= self._limit:
            piece = os.read(descriptor, _CHUNK)
            if not piece:
                break
            pieces.append(piece)
            count += len(piece)
        if count > self._limit:
            raise too_large(name, self._limit)
        if not count:
            raise empty(name)
        return b"".join(pieces)


def _with_slash(folder: str) -> str:
    return folder if folder.endswith(os.sep) else folder + os.sep


def _real_root(root: str) -> str:
    real = os.path.realpath(root)
    if not os.path.isdir(real):
        raise PolicyError(f"the media root {shown(root)} is not a folder", "name a folder that exists")
    if PLATFORM != "darwin":
        return real
    # realpath does not give the case of letters that macOS stores: ask as for the files
    descriptor = os.open(real, os.O_RDONLY)
    try:
        return descriptor_path(descriptor, os.fstat(descriptor), real)
    finally:
        os.close(descriptor)
