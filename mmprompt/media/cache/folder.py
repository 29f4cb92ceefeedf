"""A folder of cache entries, one file each, that several processes may share and any of them may leave at any time.

An entry is written to a temporary name and renamed, so that it is there whole or not at all; a checksum at its head
tells one that a disk or a crash has damaged. Nothing here fails a run: a folder that cannot be used is one log line.
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

from mmprompt._log import log
from mmprompt.media.cache.entry import CacheEntry, pack, unpack

_READ = os.O_RDONLY
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL
for _name in ("O_NOFOLLOW", "O_CLOEXEC", "O_BINARY", "O_NOINHERIT"):
    _READ |= getattr(os, _name, 0)
    _WRITE |= getattr(os, _name, 0)
_READ |= getattr(os, "O_NONBLOCK", 0)  # a FIFO that someone put here does not hang the run

_ENTRY = re.compile(r"[0-9a-f]{64}\.entry\Z")
_PARTIAL = re.compile(r"[0-9a-f]{16}\.partial\Z")
_ABANDONED = 600.0
"""Seconds after which a half-written file belongs to a process that has ended."""
_TO_KEEP = 14, 16
"""The share of the bound that is left after eviction, so that it is not due again with the next entry."""
_TO_LOOK = 16
"""The folder is looked through again after own entries of a sixteenth of the bound: others write too."""


class CacheFolder:
    """Entries under ``folder``, together at most ``max_bytes``; those not used for the longest time go first.

    An entry of more than a quarter of ``max_bytes`` is not kept. Holds no descriptor, and no lock while it reads or
    writes. What is no entry of ours is neither followed, counted nor removed.
    """

    __slots__ = ("_folder", "_is_safe", "_lock", "_max_bytes", "_said", "_since_look", "_total", "_writes")

    def __init__(self, folder: str, max_bytes: int) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._total = max_bytes  # not looked yet: the first entry makes us look
        self._since_look = 0
        self._is_safe: bool | None = None
        self._writes = True
        self._said = False
        self.forget()

    def forget(self) -> None:
        """Drop the lock, which a thread that this process does not have may hold."""
        self._lock = threading.Lock()

    def read(self, key: str) -> CacheEntry | None:
        """Return the entry of ``key``, or None; one that is damaged is removed."""
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
        """Keep ``entry``, if there is room for it."""
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
        """Return the bytes of an entry's file and mark it as used; None where it cannot be an entry of ours."""
        try:
            descriptor = os.open(path, _READ)
        except OSError as error:
            # a link (ELOOP), a socket (ENXIO): someone else's doing
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
                with contextlib.suppress(OSError):  # a folder that may only be read serves all the same
                    os.utime(descriptor)
            return b"".join(pieces)
        finally:
            os.close(descriptor)

    def _checked(self) -> bool:
        """Tell whether the folder may be used: not one in which others may put entries. Judged once.

        Raises:
            OSError: there is no such folder.
        """
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
        """Count ``size`` more bytes of ours, and tell whether the bound may be passed."""
        with self._lock:
            self._since_look += size
            few = self._since_look <= self._max_bytes // _TO_LOOK
            return not few or self._total + self._since_look > self._max_bytes

    def _evict(self) -> None:
        """Look what is there, and remove the entries used longest ago where the bound is passed."""
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
        """Return time of last use, bytes and path of each entry, and the bytes of all files of ours.

        What a process that was ended left half-written is removed; what another is writing only counts.
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
        with contextlib.suppress(OSError):  # gone already, or not ours to remove; it is not read either way
            os.unlink(path)

    def _give_up(self, verb: str, error: OSError) -> None:
        if not self._said:
            self._said = True
            reason = error.strerror or type(error).__name__
            log.warning("the media cache folder cannot be %s (%s); the run goes on without it", verb, reason)


def _shared_fault(status: os.stat_result) -> str:
    """Return why the entries of a folder cannot be trusted, nothing if they can."""
    if os.name != "posix":
        return ""
    if status.st_mode & stat.S_IWOTH:
        return "everyone may write to it"
    if status.st_mode & stat.S_IWGRP:
        return "its group may write to it"
    return "" if status.st_uid in (os.geteuid(), 0) else "it belongs to another user"
