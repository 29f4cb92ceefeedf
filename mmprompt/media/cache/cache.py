"""A cache of changed media, by content and by the change that was asked for.

A key is a hash of the bytes, of the change, and of the library versions that affect the result. So an entry is never
stale: the cache returns what would be made anew. Errors are not cached.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from functools import lru_cache

from mmprompt._version import __version__
from mmprompt.errors import PolicyError, shown
from mmprompt.media.cache.entry import FORMAT, CacheEntry
from mmprompt.media.cache.folder import CacheFolder
from mmprompt.media.sandbox.after_fork import forget_after_fork
from mmprompt.messages import MediaPart

MEMORY_BYTES = 256 << 20
DISK_BYTES = 4 << 30
_LIBRARIES = ("pillow", "av", "soundfile", "numpy", "soxr")
"""The distributions whose version may affect a result."""


class MediaCache:
    """Keeps results in memory and, if a folder is given, on disk. Safe between threads and across a fork; pickles.

    A pickled cache and the cache of a forked process have the same settings and start empty in memory. If several
    threads ask for a key at once, one makes the result and the others wait. No lock is held meanwhile.

    Args:
        max_bytes: the most bytes kept in memory; the least recently used entries go first. 0 keeps nothing.
        folder: the folder for entries on disk, created with the first one for its owner only; None for no folder.
            Processes may share it. A folder that cannot be used never fails a run: it is logged once and left out.
        max_disk_bytes: the most bytes in that folder. Each of ``n`` processes counts its own entries, so together they
            may pass the bound by ``n`` sixteenths for a while.

    Raises:
        PolicyError: a limit is not a whole number of bytes, or the folder is not a path.
    """

    def __init__(
        self,
        max_bytes: int = MEMORY_BYTES,
        folder: str | os.PathLike[str] | None = None,
        max_disk_bytes: int = DISK_BYTES,
    ) -> None:
        for name, number in (("max_bytes", max_bytes), ("max_disk_bytes", max_disk_bytes)):
            if isinstance(number, bool) or not isinstance(number, int) or number < 0:
                raise PolicyError(f"{name} of a cache is {shown(number)}", "give a number of bytes, or 0")
        self.max_bytes = max_bytes
        self.max_disk_bytes = max_disk_bytes
        self.folder = None if folder is None else _folder(folder)
        self._disk = None if self.folder is None else CacheFolder(self.folder, max_disk_bytes)
        self.forget()
        forget_after_fork(self)

    def __reduce__(self) -> tuple[type[MediaCache], tuple[int, str | None, int]]:
        return MediaCache, (self.max_bytes, self.folder, self.max_disk_bytes)

    def forget(self) -> None:
        """Drop the entries in memory, and the locks, which threads of another process may hold."""
        self._lock = threading.Lock()
        self._entries: OrderedDict[str, CacheEntry] = OrderedDict()
        self._held = 0
        self._making: dict[str, _Making] = {}
        if self._disk is not None:
            self._disk.forget()

    @property
    def bytes_held(self) -> int:
        """How many bytes the entries in memory count for."""
        return self._held

    def get_or_make(self, key: str, make: Callable[[], CacheEntry]) -> CacheEntry:
        """Return the entry of ``key``; make and keep it if there is none.

        Args:
            key: from ``cache_key``.
            make: makes the entry. Its errors pass through, and then nothing is kept. It must not ask for ``key``.
        """
        while True:
            with self._lock:
                found = self._entries.get(key)
                if found is not None:
                    self._entries.move_to_end(key)
                    return found
                making = self._making.get(key)
                if making is None:
                    making = self._making[key] = _Making()
                    break
            making.done.wait()
            if making.result is not None:
                return making.result
        try:
            making.result = result = self._from_disk_or(key, make)
            self._keep(key, result)
        finally:
            with self._lock:
                self._making.pop(key, None)
            making.done.set()
        return result

    def _from_disk_or(self, key: str, make: Callable[[], CacheEntry]) -> CacheEntry:
        if self._disk is None:
            return make()
        found = self._disk.read(key)
        if found is None:
            found = make()
            self._disk.write(key, found)
        return found

    def _keep(self, key: str, entry: CacheEntry) -> None:
        size = entry.size
        if size > self.max_bytes:
            return
        with self._lock:
            old = self._entries.pop(key, None)
            self._entries[key] = entry
            self._held += size - (0 if old is None else old.size)
            while self._held > self.max_bytes:
                _, oldest = self._entries.popitem(last=False)
                self._held -= oldest.size


def _folder(path: object) -> str:
    name = os.fspath(path) if isinstance(path, (str, os.PathLike)) else None
    if not isinstance(name, str) or not name.strip() or "\x00" in name:
        raise PolicyError(f"the cache folder {shown(path)} is not a path", "name a folder, or None for none")
    return os.path.abspath(name)


class _Making:
    """An entry that a thread is making. Others wait for ``done``; ``result`` stays None if the thread failed."""

    __slots__ = ("done", "result")

    def __init__(self) -> None:
        self.done = threading.Event()
        self.result: CacheEntry | None = None


def cache_key(part: MediaPart, *asked: object) -> str:
    """Return the key, 64 hexadecimal digits, of the change ``asked`` applied to the content of ``part``.

    Only the content counts (modality, media type, bytes, frames), not its origin, options or extra keys.
    ``asked`` holds plain values, tuples of them and sets, such as ``Changes`` and ``TargetRoom``; the order within a
    set makes no difference.
    """
    lengths = (len(part.data), *map(len, part.frames))
    words = f"{_versions()}\n{part.modality}\n{part.media_type}\n{lengths}\n{_written(asked)}\n"
    digest = hashlib.sha256(words.encode("utf-8", "surrogatepass"))
    digest.update(part.data)
    for frame in part.frames:
        digest.update(frame)
    return digest.hexdigest()


def _written(value: object) -> str:
    """Return a value as text that is the same in every process, with the members of sets sorted."""
    if isinstance(value, (set, frozenset)):
        return f"{{{','.join(sorted(map(_written, value)))}}}"
    if isinstance(value, tuple):
        return f"{type(value).__name__}({','.join(map(_written, value))})"
    return repr(value)


@lru_cache(maxsize=1)
def _versions() -> str:
    from importlib import metadata  # noqa: PLC0415  # loads a mail parser, which checks do not need

    found = [f"mmprompt {__version__}", f"format {FORMAT}"]
    for name in _LIBRARIES:
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            found.append(f"{name} none")
    return ", ".join(found)
