"""Guarded reading of files: open first, then judge the descriptor.

A path is only a way to a file; links and renames can change where it leads between a look and an open. So the file is
opened without side effects, and what the *descriptor* is decides: a regular file whose real path lies under a root.
Paths that leave their root on their face (absolute, ``..``) are judged before the open as well, so that no device
outside is ever touched. A hard link cannot be told from a file of its own.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from typing import NamedTuple, NoReturn

from mmprompt.errors import MediaError, PolicyError, SourceError, shown
from mmprompt.media.policy import MediaPolicy
from mmprompt.media.windows_paths import is_drive_path, windows_fault, windows_inside, windows_same

WINDOWS = os.name == "nt"
_PLATFORM: str = sys.platform  # a plain string, so that mypy checks every branch
HEAD_BYTES = 4096
"""How many bytes are looked at where only the kind is asked for."""

_FLAGS = os.O_RDONLY
for _name in ("O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY", "O_NOINHERIT"):
    _FLAGS |= getattr(os, _name, 0)
_CHUNK = 1 << 16
_HOW_TO_ALLOW = "allow its folder with --media-root DIR (MediaPolicy(roots=[DIR])), or move the file into a root"


class Opened(NamedTuple):
    """An open regular file that the policy allows: its descriptor, stated size, and the path it was opened by."""

    descriptor: int
    size: int
    path: str


class GuardedFiles:
    """Reads files under the roots of a policy, and nothing else. Holds no open file; safe to share between threads.

    The roots are resolved here, once.

    Raises:
        PolicyError: a root that is no folder, or that cannot be opened.
    """

    __slots__ = ("_blobs", "_files", "_limit", "_prefixes", "_real_files", "_written")

    def __init__(self, policy: MediaPolicy) -> None:
        real_roots = [_real_root(root) for root in policy.roots]
        self._limit = policy.max_bytes
        self._prefixes = tuple(_with_slash(root) for root in real_roots)
        absolute = [_with_slash(os.path.abspath(root)) for root in policy.roots]
        self._written = tuple(dict.fromkeys((*self._prefixes, *absolute)))
        self._blobs = tuple(filter(None, map(blobs_folder, self._prefixes)))
        self._files = {file: os.path.abspath(file) for file in policy.files}
        self._real_files = frozenset(map(os.path.realpath, policy.files))

    def read(self, path: str) -> bytes:
        """Return the bytes of the file that ``path`` names: absolute, or relative to the first root that has it.

        Raises:
            SourceError: no such file, an empty one, or a string that is no path here (NUL, drive letter, UNC).
            PolicyError: outside the roots, no regular file, too large, or not readable for us.
        """
        opened = self._open(path)
        try:
            return self._content(opened, path)
        finally:
            os.close(opened.descriptor)

    def head(self, path: str) -> tuple[bytes, str]:
        """Return the first ``HEAD_BYTES`` bytes of the file and the absolute path it was opened by; as ``read``."""
        opened = self._open(path)
        try:
            if opened.size > self._limit:
                raise self._too_large(path)
            data = os.read(opened.descriptor, HEAD_BYTES)
        except OSError as error:
            raise _os_fault(error, path) from None
        finally:
            os.close(opened.descriptor)
        if not data:
            raise _empty(path)
        return data, opened.path

    def _open(self, path: str) -> Opened:
        if path[1:2] == ":" or path[:2] == "\\\\" or WINDOWS:
            _check_foreign(path)
        if not self._prefixes and not self._files:
            raise PolicyError(
                f"no media root is set, so the path {shown(path)} is refused",
                "name the folder that holds the media: --media-root DIR, or MediaPolicy(roots=[DIR])",
            )
        if os.path.isabs(path) or ".." in path:
            return self._try_open(self._judged(path), path)
        missing: SourceError | None = None
        for prefix in self._prefixes:
            try:
                return self._try_open(prefix + path, path)
            except _MissingError as error:
                missing = error
        if path in self._files:
            return self._try_open(self._files[path], path)
        if missing is None:
            _refuse_outside(path)
        raise missing

    def _judged(self, path: str) -> str:
        """Return the absolute path to open for one that is absolute or holds ``..``, judged before it is opened."""
        if os.path.isabs(path) and ".." not in path and path.startswith(self._written):
            return path
        missing = ""
        for prefix in self._prefixes or ("",):
            try:
                real = os.path.realpath(os.path.join(prefix, path))
            except (OSError, ValueError):
                raise _not_a_name(path) from None
            if self._allows(real):
                if os.path.lexists(real):
                    return real
                missing = real
        if not missing:
            _refuse_outside(path)
        return missing

    def _allows(self, real: str) -> bool:
        """Tell whether a real path is under a root, directly in the blobs beside one, or a file the caller named."""
        if WINDOWS:
            return any(windows_inside(real, p) for p in self._prefixes) or any(
                windows_same(real, f) for f in self._real_files
            )
        if real.startswith(self._prefixes) or real in self._real_files:
            return True
        return any(real.startswith(blobs) and "/" not in real[len(blobs) :] for blobs in self._blobs)

    def _try_open(self, full: str, path: str) -> Opened:
        """Open ``full`` and judge its descriptor; errors speak of ``path``, as the sample wrote it."""
        before = os.path.realpath(full) if WINDOWS else ""
        if before and not self._allows(before):
            _refuse_outside(path, linked=True)
        try:
            descriptor = os.open(full, _FLAGS)
        except OSError as error:
            raise _os_fault(error, path) from None
        except ValueError:
            raise _not_a_name(path) from None
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                _refuse_irregular(status.st_mode, path)
            real = _descriptor_path(descriptor, status, full)
            if not self._allows(real) or (before and not windows_same(before, real)):
                _refuse_outside(path, linked=True)
        except BaseException:
            os.close(descriptor)
            raise
        return Opened(descriptor, status.st_size, full)

    def _content(self, opened: Opened, path: str) -> bytes:
        """Read to the end, bounded by what was read and not by what ``fstat`` says."""
        descriptor, size, _ = opened
        if size > self._limit:
            raise self._too_large(path)
        try:
            # one byte more than stated: a full read would mean that the file has grown
            data = os.read(descriptor, size + 1)
            if len(data) != size or not size:
                data = self._rest(descriptor, data)
        except OSError as error:
            raise _os_fault(error, path) from None
        if len(data) > self._limit:
            raise self._too_large(path)
        if not data:
            raise _empty(path)
        return data

    def _rest(self, descriptor: int, data: bytes) -> bytes:
        pieces = [data]
        count = len(data)
        while data and count <= self._limit:
            data = os.read(descriptor, _CHUNK)
            pieces.append(data)
            count += len(data)
        return b"".join(pieces)

    def _too_large(self, path: str) -> PolicyError:
        return PolicyError(f"{shown(path)} is larger than max_bytes ({self._limit})", "raise max_bytes to allow it")


class _MissingError(SourceError):
    """No such file here; another root may have it."""


def blobs_folder(root: str) -> str:
    """Return the ``blobs`` folder, with a slash at its end, of the Hugging Face cache repository that ``root`` is in.

    ``root`` is a real path such as ``…/hub/datasets--org--name/snapshots/<revision>/``; an empty string for others.
    """
    names = root.split("/")
    for index in range(len(names) - 1, 0, -1):
        repository = names[index - 1]
        if names[index] == "snapshots" and repository.startswith(("datasets--", "models--", "spaces--")):
            return "/".join((*names[:index], "blobs", ""))
    return ""


def _with_slash(folder: str) -> str:
    return folder if folder.endswith(os.sep) else folder + os.sep


def _real_root(root: str) -> str:
    real = os.path.realpath(root)
    if not os.path.isdir(real):
        raise PolicyError(f"the media root {shown(root)} is no folder", "name a folder that exists")
    if _PLATFORM != "darwin":
        return real
    # macOS keeps the case of the file system, which realpath does not: ask the same way as for files
    descriptor = os.open(real, os.O_RDONLY)
    try:
        return _descriptor_path(descriptor, os.fstat(descriptor), real)
    finally:
        os.close(descriptor)


def _descriptor_path(descriptor: int, status: os.stat_result, full: str) -> str:
    """Return the real path of an open file: from the kernel, else from ``full`` if that still is the same file."""
    if _PLATFORM == "linux":
        try:
            return os.readlink(f"/proc/self/fd/{descriptor}")
        except OSError:  # no /proc here
            pass
    elif _PLATFORM == "darwin":
        import fcntl  # noqa: PLC0415  # POSIX only

        answer = fcntl.fcntl(descriptor, getattr(fcntl, "F_GETPATH", 50), b"\x00" * 1024)
        return os.fsdecode(answer.partition(b"\x00")[0])
    real = os.path.realpath(full)
    now = os.stat(real)
    return real if (now.st_dev, now.st_ino) == (status.st_dev, status.st_ino) else ""


def _check_foreign(path: str) -> None:
    """Refuse the paths of another system: drive letters and UNC here, devices and streams on Windows."""
    if WINDOWS:
        fault = windows_fault(path)
        if fault:
            raise SourceError(f"{shown(path)} is {fault}", "name a file by a plain path")
    elif path[:2] == "\\\\":
        raise SourceError(f"{shown(path)} is a UNC path", "copy the file here and write a path relative to the root")
    elif is_drive_path(path):
        raise SourceError(f"{shown(path)} is a Windows path with a drive letter", "write it relative to the media root")


def _refuse_outside(path: str, *, linked: bool = False) -> NoReturn:
    after = " after links" if linked else ""
    raise PolicyError(f"{shown(path)} is outside the media roots{after}", _HOW_TO_ALLOW)


def _empty(path: str) -> SourceError:
    return SourceError(f"{shown(path)} is empty", "restore the file")


def _not_a_name(path: str) -> SourceError:
    what = "holds a NUL" if "\x00" in path else "is no name that this file system has"
    return SourceError(f"the path {shown(path)} {what}", "write the name of the file")


def _refuse_irregular(mode: int, path: str) -> NoReturn:
    raise _not_regular(mode, path)


def _not_regular(mode: int, path: str) -> PolicyError:
    kinds = {stat.S_IFDIR: "a directory", stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket"}
    kind = kinds.get(stat.S_IFMT(mode), "a device")
    return PolicyError(f"{shown(path)} is {kind}", "only regular files are read")


def _os_fault(error: OSError, path: str) -> MediaError:
    """Return our error for one of the system's, which would show the whole path."""
    code = error.errno
    if code in (errno.ENOENT, errno.ENOTDIR):
        mend = "check the name; relative paths begin at the media root"
        if "\\" in path:
            mend += "; write / for the backslashes"
        elif path != path.strip():
            mend += "; it begins or ends with a blank"
        return _MissingError(f"no such file: {shown(path)}", mend)
    if code in (errno.EACCES, errno.EPERM):
        return PolicyError(f"{shown(path)} may not be read: permission denied", "allow this user to read it")
    if code == errno.ENAMETOOLONG:
        return SourceError(
            f"the path {shown(path)} is too long", "write a shorter one; if it is base64, its bytes are no known media"
        )
    if code == errno.ELOOP:
        return SourceError(f"{shown(path)} is a loop of links", "mend the link")
    if code in (errno.ENXIO, errno.ENODEV):
        return _not_regular(stat.S_IFSOCK, path)
    if code == errno.EISDIR:
        return _not_regular(stat.S_IFDIR, path)
    return SourceError(f"{shown(path)} cannot be read: {os.strerror(code or 0)}", "check the disk and the file")
