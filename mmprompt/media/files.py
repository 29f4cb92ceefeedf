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
from typing import NoReturn

from mmprompt.errors import MediaError, PolicyError, SourceError, Where, shown
from mmprompt.media.path_hints import name_hint
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
_FILE_TYPE = 0o170000
_HOW_TO_ADD = "--media-root DIR, media: {roots: [DIR]} or MediaPolicy(roots=[DIR])"
_HOW_TO_ALLOW = f"move the file into a root, or allow its folder with {_HOW_TO_ADD}"


Opened = tuple[int, int, str]
"""An open regular file that the policy allows: its descriptor, stated size, and the path it was opened by."""


class GuardedFiles:
    """Reads files under the roots of a policy, and nothing else. Holds no open file; safe to share between threads.

    The roots are resolved here, once.

    Raises:
        PolicyError: a root that is no folder, or that cannot be opened.
    """

    __slots__ = ("_blobs", "_files", "_limit", "_only_root", "_prefixes", "_real_files", "_written")

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

    def read(self, path: str) -> bytes:
        """Return the bytes of the file that ``path`` names: absolute, or relative to the first root that has it.

        Raises:
            SourceError: no such file, an empty one, or a string that is no path here (NUL, drive letter, UNC).
            PolicyError: outside the roots, no regular file, too large, or not readable for us.
        """
        descriptor, size, _ = self._open(path)
        try:
            if 0 < size <= self._limit:
                # one byte more than stated: a full read would mean that the file has grown
                data = os.read(descriptor, size + 1)
                if len(data) == size:
                    return data
                return self._rest(descriptor, data, path)
            return self._rest(descriptor, b"", path, size)
        except OSError as error:
            raise _os_fault(error, path) from None
        finally:
            os.close(descriptor)

    def head(self, path: str) -> tuple[bytes, str]:
        """Return the first ``HEAD_BYTES`` bytes of the file and the absolute path it was opened by; as ``read``."""
        descriptor, size, full = self._open(path)
        try:
            if size > self._limit:
                self._refuse_large(path)
            data = os.read(descriptor, HEAD_BYTES)
        except OSError as error:
            raise _os_fault(error, path) from None
        finally:
            os.close(descriptor)
        if not data:
            raise _empty(path)
        return data, full

    def _open(self, path: str) -> Opened:
        if self._only_root and not (path[:1] == "/" or ":" in path or "\\" in path or ".." in path):
            return self._try_open(self._only_root + path, path)
        _check_foreign(path)
        if not self._prefixes and not self._files:
            raise PolicyError(
                f"no media root is set, so the path {shown(path)} is refused",
                f"name the folder that holds the media: {_HOW_TO_ADD}",
                Where(setting="media.roots"),
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
        if real.startswith(self._prefixes) or real in self._real_files:
            return True
        if WINDOWS:
            return any(windows_inside(real, p) for p in self._prefixes) or any(
                windows_same(real, f) for f in self._real_files
            )
        return any(real.startswith(blobs) and "/" not in real[len(blobs) :] for blobs in self._blobs)

    def _try_open(self, full: str, path: str) -> Opened:
        """Open ``full`` and judge its descriptor; errors speak of ``path``, as the sample wrote it."""
        before = self._resolved_before(full, path) if WINDOWS else ""
        try:
            descriptor = os.open(full, _FLAGS)
        except OSError as error:
            raise _os_fault(error, path) from None
        except ValueError:
            raise _not_a_name(path) from None
        try:
            status = os.fstat(descriptor)
            if status.st_mode & _FILE_TYPE != stat.S_IFREG:
                _refuse_irregular(status.st_mode, path)
            real = _descriptor_path(descriptor, status, full)
            if not self._allows(real) or (before and not windows_same(before, real)):
                _refuse_outside(path, linked=True)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor, status.st_size, full

    def _resolved_before(self, full: str, path: str) -> str:
        """Resolve and judge a path before it is opened, where a descriptor does not tell its name."""
        real = os.path.realpath(full)
        if not self._allows(real):
            _refuse_outside(path, linked=True)
        return real

    def _rest(self, descriptor: int, data: bytes, path: str, stated: int = 0) -> bytes:
        """Read on to the end, bounded by what was read and not by what ``fstat`` says."""
        pieces = [data]
        count = max(len(data), stated)
        while count <= self._limit:
            piece = os.read(descriptor, _CHUNK)
            if not piece:
                break
            pieces.append(piece)
            count += len(piece)
        if count > self._limit:
            self._refuse_large(path)
        if not count:
            raise _empty(path)
        return b"".join(pieces)

    def _refuse_large(self, path: str) -> NoReturn:
        raise PolicyError(f"{shown(path)} is larger than max_bytes ({self._limit})", "raise max_bytes to allow it")


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
    return same_file_path(status, full)


def same_file_path(status: os.stat_result, full: str) -> str:
    """Return the real path of ``full`` if the file there is the one with this status, else an empty string."""
    try:
        real = os.path.realpath(full)
        now = os.stat(real)
    except OSError:
        return ""
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
        begin = f"relative paths begin at the media root; {_HOW_TO_ADD} adds one"
        hint = f"check the name; {begin}{name_hint(path)}"
        return _MissingError(f"no such file: {shown(path)}", hint)
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
