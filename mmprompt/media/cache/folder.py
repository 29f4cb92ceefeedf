"""A folder of cache entries, one file each, which several processes may share; any of them may end at any time.

An entry is written to a temporary name and renamed, so a file is complete or absent; a checksum at its beginning
detects damage. A folder that cannot be used never fails a run: it is logged once.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
import threading
import time

from mmprompt._log import warn
from mmprompt.media.cache.entry import CacheEntry, pack, unpack

_READ = os.O_RDONLY
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL
for _name in ("O_NOFOLLOW", "O_CLOEXEC", "O_BINARY", "O_NOINHERIT"):
    _READ |= getattr(os, _name, 0)
    _WRITE |= getattr(os, _name, 0)
_READ |= getattr(os, "O_NONBLOCK", 0)  # a FIFO in the folder must not hang the run

_ENTRY = re.compile(r"[0-9a-f]{64}\.entry\Z")
_PARTIAL = re.compile(r"[0-9a-f]{16}\.partial\Z")
_ABANDONED = 600.0
"""Seconds after which a partial file is taken to be left over by a process that has ended."""
_TO_KEEP = 14, 16
"""The share of the bound that eviction leaves, so that the next entry does not cause another."""
_TO_LOOK = 16
"""The folder is listed again after this process wrote a sixteenth of the bound: others write too."""


class CacheFolder:
    """The entries of a folder, together at most ``max_bytes``; the least recently used go first.

    An entry of more than a quarter of ``max_bytes`` is not kept. No descriptor stays open, and no lock is held while
    reading or writing. Files that are not entries are not followed, counted or removed.
    """

    __slots__ = ("_folder", "_is_safe", "_lock", "_max_bytes", "_said", "_since_look", "_total", "_writes")

    def __init__(self, folder: str, max_bytes: int) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._total = max_bytes  # unknown: the first entry makes it list the folder
        self._since_look = 0
        self._is_safe: bool | None = None
        self._writes = True
        self._said = False
        self.forget()

    def forget(self) -> None:
        """Make a new lock: a thread of the process before a fork may hold the old one."""
        self._lock = threading.Lock()

    def read(self, key: str) -> CacheEntry | None:
        """Return the entry of ``key``, or None; remove it if it is damaged."""
        path = self._path(key)
        try:
            if not self._checked():
                return None
            packed = self._bytes_of(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            self._give_up("read", error)
            return None
        entry = None if packed is None else unpack(key, packed)
        if entry is None:
            self._remove(path)
        return entry

    def write(self, key: str, entry: CacheEntry) -> None:
        """Write ``entry``, unless it is too large."""
        if not self._writes:
            return
        packed = pack(key, entry)
        if len(packed) > self._max_bytes // 4:
            return
        try:
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            if self._checked():
                self._put(self._path(key), packed)
                if self._is_look_due(len(packed)):
                    self._evict()
        except OSError as error:
            self._writes = False
            self._give_up("written", error)

    def _path(self, key: str) -> str:
        return os.path.join(self._folder, key + ".entry")

    def _bytes_of(self, path: str) -> bytes | None:
        """Return the bytes of an entry's file and mark it as used; None if it cannot be an entry."""
        try:
            descriptor = os.open(path, _READ)
        except OSError as error:
            # a link (ELOOP) or a socket (ENXIO) that somebody else put there
            if error.errno in (errno.ELOOP, errno.ENXIO, errno.EMLINK):
                return None
            raise
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_size > self._max_bytes:
                return None
            pieces = []
            left = status.st_size + 1
            while left > 0 and (piece := os.read(descriptor, left)):
                pieces.append(piece)
                left -= len(piece)
            if os.utime in os.supports_fd:
                with contextlib.suppress(OSError):  # a read-only folder still serves its entries
                    os.utime(descriptor)
            return b"".join(pieces)
        finally:
            os.close(descriptor)

    def _checked(self) -> bool:
        """Return whether the folder is safe to use: no other user may write to it. Checked once."""
        if self._is_safe is None:
            status = os.stat(self._folder)
            fault = _shared_fault(status) if stat.S_ISDIR(status.st_mode) else "it is not a folder"
            self._is_safe = not fault
            if fault:
                self._give_up("used", PermissionError(errno.EPERM, fault))
        return self._is_safe

    def _put(self, path: str, packed: bytes) -> None:
        partial = os.path.join(self._folder, secrets.token_hex(8) + ".partial")
        descriptor = os.open(partial, _WRITE, 0o600)
        try:
            try:
                view = memoryview(packed)
                while view:
                    view = view[os.write(descriptor, view) :]
            finally:
                os.close(descriptor)
            os.replace(partial, path)
        except BaseException:
            self._remove(partial)
            raise

    def _is_look_due(self, size: int) -> bool:
        """Count ``size`` bytes that were written, and return whether the bound may be passed."""
        with self._lock:
            self._since_look += size
            few = self._since_look <= self._max_bytes // _TO_LOOK
            return not few or self._total + self._since_look > self._max_bytes

    def _evict(self) -> None:
        """List the folder, and remove the least recently used entries if the bound is passed."""
        with self._lock:
            self._since_look = 0
        entries, total = self._entries()
        if total > self._max_bytes:
            share, of = _TO_KEEP
            for _, size, path in sorted(entries):
                if total <= self._max_bytes * share // of:
                    break
                self._remove(path)
                total -= size
        with self._lock:
            self._total = total

    def _entries(self) -> tuple[list[tuple[float, int, str]], int]:
        """Return time of last use, size and path of each entry, and the size of all entries and partial files.

        Partial files of processes that have ended are removed.
        """
        found = []
        total = 0
        now = time.time()
        with os.scandir(self._folder) as listed:
            for item in listed:
                entry, partial = _ENTRY.match(item.name), _PARTIAL.match(item.name)
                if not entry and not partial:
                    continue
                try:
                    status = item.stat(follow_symlinks=False)
                except FileNotFoundError:  # another process was faster
                    continue
                if partial and now - status.st_mtime > _ABANDONED:
                    self._remove(item.path)
                    continue
                total += status.st_size
                if entry:
                    found.append((status.st_mtime, status.st_size, item.path))
        return found, total

    def _remove(self, path: str) -> None:
        with contextlib.suppress(OSError):  # gone, or not ours to remove; it is not read in either case
            os.unlink(path)

    def _give_up(self, verb: str, error: OSError) -> None:
        if not self._said:
            self._said = True
            reason = error.strerror or type(error).__name__
            what = "the media cache folder cannot be %s (%s); the run goes on without it"
            warn("MM904", what, verb, reason)


def _shared_fault(status: os.stat_result) -> str:
    """Return why the entries of a folder cannot be trusted; an empty string if they can."""
    if os.name != "posix":
        return ""
    if status.st_mode & stat.S_IWOTH:
        return "everyone may write to it"
    if status.st_mode & stat.S_IWGRP:
        return "its group may write to it"
    return "" if status.st_uid in (os.geteuid(), 0) else "it belongs to another user"
