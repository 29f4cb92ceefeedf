"""Files that appear under their names when they are complete.

Until then a file has no name, or a hidden one beside its own: ``.NAME.….part``. The process that writes it holds a lock
on it, so that the next run can tell what a killed one has left, and removes it.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from mmprompt.errors import MMPromptError
from mmprompt.media.outputs import OutputReadError
from mmprompt.targets.chunk_writer import ChunkWriter

_SHOWN = 60
"""Characters of a file's name in that of its part, which may not be too long."""

_ENDS = (MMPromptError, OSError, KeyboardInterrupt)
"""What ends a command early and leaves its errors as they are."""

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL
_LOOK = os.O_RDONLY
for _name in ("O_CLOEXEC", "O_BINARY", "O_NOINHERIT", "O_NOFOLLOW"):
    _NEW |= getattr(os, _name, 0)
    _LOOK |= getattr(os, _name, 0)
_LOOK |= getattr(os, "O_NONBLOCK", 0)


@contextmanager
def faults_of(path: str) -> Iterator[None]:
    """Name a file in the errors of what is written to it: a write knows only the descriptor."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = path
        raise


@contextmanager
def whole_file(path: str, *, keeps: bool = False) -> Iterator[ChunkWriter]:
    """Open a file that gets its name when the block ends well, and with ``keeps`` also if an error or ``^C`` ends it.

    A link stays one: the file that it leads to is replaced.

    Raises:
        OSError: the file cannot be written; the error names it, unless a write has failed.
    """
    part = _Part(path)
    try:
        writer = ChunkWriter(part.descriptor)
        try:
            yield writer
        except BaseException as error:
            if keeps and isinstance(error, _ENDS) and not _is_about(error, path):
                with suppress(OSError):
                    part.complete(writer, path)
            raise
        part.complete(writer, path)
    finally:
        part.close()


def _is_about(error: BaseException, path: str) -> bool:
    """Return whether an error says that this file cannot be written, or is not to be replaced."""
    return isinstance(error, OutputReadError) or getattr(error, "filename", None) == path


class _Part:
    """What becomes a file: a locked ``descriptor``, and the name that it has or may get."""

    def __init__(self, path: str) -> None:
        while True:
            self._name = _part_of(path)
            descriptor = _nameless(self._name)
            is_named = descriptor is None
            try:
                self.descriptor = os.open(self._name, _NEW, 0o666) if descriptor is None else descriptor
            except OSError as error:
                raise OSError(error.errno, error.strerror, path) from None
            if _is_ours(self.descriptor, self._name if is_named else None):
                return
            os.close(self.descriptor)

    def complete(self, writer: ChunkWriter, path: str) -> None:
        """Bring what was written to the disk, and give it the name ``path``."""
        if writer.discarded:
            return
        writer.flush()
        os.fsync(self.descriptor)  # before the name: a crash leaves the older file or the whole new one
        if not os.path.exists(self._name):
            _give_name(self.descriptor, self._name)
        if os.name == "nt":  # which renames no open file
            self._close()
        put(self._name, path)

    def close(self) -> None:
        """Remove what has not become the file."""
        if os.name == "nt":
            self._close()
        with suppress(FileNotFoundError):  # it has become the file, or never had a name
            os.unlink(self._name)
        self._close()

    def _close(self) -> None:
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def put(part: str, path: str, *, synced: bool = True) -> None:
    """Give a complete file or folder the name of an output, and the rights of the file that it replaces.

    ``synced``: it is on the disk. Another file is brought there before it has its name.

    Raises:
        OSError: it cannot get the name, which the error has.
    """
    target = os.path.realpath(path)
    try:
        if not synced and os.path.isfile(part):
            with open(part, "rb") as file:
                os.fsync(file.fileno())
        if os.path.isfile(target):
            os.chmod(part, stat.S_IMODE(os.stat(target).st_mode))
        os.replace(part, target)
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from None


@contextmanager
def locked_folder(path: str) -> Iterator[str]:
    """Give a new hidden folder beside a file. It is removed when the block ends.

    Raises:
        OSError: it cannot be made; the error names the file.
    """
    descriptor = None
    try:
        while True:
            folder = _part_of(path)
            os.mkdir(folder)
            if os.name != "posix":  # where no folder can be opened
                break
            descriptor = os.open(folder, _LOOK)
            if _is_ours(descriptor, folder):
                break
            os.close(descriptor)
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from None
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if descriptor is not None:
            os.close(descriptor)


def remove_parts(path: str) -> None:
    """Remove what killed runs have left beside a file: the parts of it that no process holds."""
    folder, name = os.path.split(os.path.realpath(path))
    of_this = re.compile(re.escape(f".{name[:_SHOWN]}.") + r"[0-9a-f]{12}\.part\Z")
    with suppress(OSError):
        parts = [part for part in os.listdir(folder) if of_this.match(part)]
        for part in parts:
            with suppress(OSError):  # a process holds it
                _remove(os.path.join(folder, part))


def _part_of(path: str) -> str:
    """Return a new name for what becomes a file; a process number would come again in another container."""
    folder, name = os.path.split(os.path.realpath(path))
    return os.path.join(folder, f".{name[:_SHOWN]}.{os.urandom(6).hex()}.part")


def _nameless(later: str) -> int | None:
    """Return a new file without a name that can get the name ``later``; None if the system has no such files.

    If the process is killed, nothing is left of it. An empty file is named first, to see that the system can do it.
    """
    flags = getattr(os, "O_TMPFILE", 0) | os.O_WRONLY
    if flags == os.O_WRONLY:
        return None
    folder = os.path.dirname(later)
    try:
        first = os.open(folder, flags, 0o666)
        try:
            _give_name(first, later)
            os.unlink(later)
        finally:
            os.close(first)
        return os.open(folder, flags, 0o666)
    except OSError:  # the file system has none; other faults show when a named file is opened
        return None


def _give_name(descriptor: int, name: str) -> None:
    """Give a file without a name its name; the folder's descriptor makes Python follow the link in /proc."""
    folder = os.open(os.path.dirname(name), os.O_RDONLY)
    try:
        os.link(f"/proc/self/fd/{descriptor}", name, src_dir_fd=folder, follow_symlinks=True)
    finally:
        os.close(folder)


def _remove(part: str) -> None:
    """Remove a part that no process holds.

    Raises:
        OSError: a process holds it, or the file system has no locks.
    """
    descriptor = os.open(part, _LOOK)
    try:
        _lock(descriptor)
        shutil.rmtree(part) if os.path.isdir(part) else os.unlink(part)
    finally:
        os.close(descriptor)


def _is_ours(descriptor: int, part: str | None) -> bool:
    """Hold a new part, and return whether it is still there: another run may have taken it for one that is left.

    None stands for one without a name, which no other run sees.
    """
    try:
        _lock(descriptor)
    except BlockingIOError:
        return False
    except OSError:  # the file system has no locks, so nobody removes it
        return True
    return part is None or os.path.exists(part)


def _lock(descriptor: int) -> None:
    """Lock a file or folder until its descriptor is closed.

    Raises:
        BlockingIOError: another process holds it.
        OSError: the file system has no locks.
    """
    try:
        import fcntl  # noqa: PLC0415  # not on Windows, which removes no file that is open
    except ImportError:
        return
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
