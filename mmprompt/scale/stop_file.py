"""How the shards of a run are stopped: the driver makes a file in their work folder, which each shard looks for."""

from __future__ import annotations

import os
import threading

from mmprompt.run.interruption import Interruption

_PAUSE = 0.2
"""Seconds between two looks."""


def stop_file(folder: str, session: int) -> str:
    """Return the name of the file that stops the shards of a run; ``session`` is its own number."""
    return os.path.join(folder, f"{session}.stop")


class ShardInterruption(Interruption):
    """Is true also after the driver has made the file ``path``. What is in flight ends then."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path
        self._stopped = threading.Event()
        self._ended = threading.Event()

    def __enter__(self) -> ShardInterruption:
        super().__enter__()
        threading.Thread(target=self._watch, name="mmprompt-stop-file", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        super().__exit__()

    def wait(self, seconds: float) -> None:
        """Wait so long, or until the shard is to stop."""
        self._stopped.wait(seconds)

    def _watch(self) -> None:
        while not os.path.exists(self._path):
            if self._ended.wait(_PAUSE):
                return
        self._came = True
        self._stopped.set()
        self._begin_to_stop()
