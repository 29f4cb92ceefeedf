"""The Ray engine: shards as tasks of a Ray cluster, which tries a task again whose worker or node died."""

from __future__ import annotations

import os
import pickle
import re
import secrets
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from typing import IO, TypeVar, cast

import mmprompt
from mmprompt.errors import TaskError, shown
from mmprompt.media.outputs import REPLACED

_Spec = TypeVar("_Spec")
_Report = TypeVar("_Report")

_BOOT = (
    "import sys; workers, address, folder = sys.argv[1:4]; sys.path[:] = sys.argv[4:]; "
    "from mmprompt.scale.ray_driver import drive; drive(int(workers), address, folder)"
)
_INSTALL = "pip install 'mmprompt[ray]'"
_OLDEST = (2, 52)
"""The first Ray whose clusters ask for a token."""

_LOOPBACK = ("127.", "localhost", "[::1]")
_ENDING = 20.0
"""Seconds that Ray has to end its processes before they are killed."""

_LOG_TAIL = 4096
_LONGEST_FOLDER = 16
"""Characters of the folder of temporary files. The names of Ray's sockets begin there and have a limit."""


def run_ray(
    function: Callable[[_Spec], _Report], specs: Iterable[_Spec], workers: int | None = None
) -> Generator[_Report, None, None]:
    """Run a shard function for each spec as a task of Ray, and yield the reports as shards end, in any order.

    Ray runs in a process of its own: nothing of it changes this one, and what it prints goes to a file. It joins the
    cluster that the environment variable ``RAY_ADDRESS`` names. Without it, or with ``local``, one is started, which
    listens on loopback only, without dashboard or usage reports, and ends with the run. It has a token of its own,
    whatever the environment says. A task whose
    worker or node died is tried again by Ray.

    Args:
        function: a function at the top of a module that the workers can import.
        specs: what it is called with, each plain data.
        workers: the most shards at once; by default one for each CPU.

    Raises:
        TaskError: Ray is not installed, or too old, or does not start.
        MMPromptError: what the function raised; the shards in progress are stopped.
    """
    _require_ray()
    address = os.environ.get("RAY_ADDRESS", "")
    address = "local" if address.lower() == "local" else address  # Ray takes it in capitals too
    short = None if len(tempfile.gettempdir()) <= _LONGEST_FOLDER else "/tmp"  # noqa: S108  # the folder in it is ours
    with (
        tempfile.TemporaryDirectory(prefix="mmprompt-", dir=short, ignore_cleanup_errors=True) as folder,
        open(os.path.join(folder, "driver.log"), "w+b", buffering=0) as log,
    ):
        process = _started(workers, address, folder, log)
        try:
            yield from _reports(process, log, function, specs)
        finally:
            _end(process)


def _require_ray() -> None:
    """Refuse a Ray that is missing, or so old that it knows no tokens."""
    try:
        found = version("ray")
    except PackageNotFoundError:
        raise TaskError("--engine ray needs Ray", _INSTALL, code="MM903") from None
    if tuple(map(int, re.findall(r"\d+", found)[:2])) < _OLDEST:
        what = f"--engine ray needs Ray {'.'.join(map(str, _OLDEST))} or newer, and this is {found}"
        raise TaskError(what, _INSTALL, code="MM903")


def _started(workers: int | None, address: str, folder: str, log: IO[bytes]) -> subprocess.Popen[bytes]:
    own = os.path.dirname(os.path.dirname(os.path.abspath(mmprompt.__file__)))
    path = [name for name in sys.path if os.path.isabs(name)]
    words = [str(workers or 0), address, folder, *(path if own in path else [*path, own])]
    return subprocess.Popen(  # noqa: S603  # no part of it comes from data
        [sys.executable, "-c", _BOOT, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        cwd=folder,  # Ray puts the current folder on the import path of its workers
        env={**os.environ, **_settings(address)},
        start_new_session=True,  # a Ctrl-C in the terminal is for this process
    )


def _settings(address: str) -> dict[str, str]:
    """Return the environment variables with which Ray keeps to loopback, and to itself."""
    settings = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_DEDUP_LOGS": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
    own = address in ("", "local")
    if own or address.startswith(_LOOPBACK):
        settings["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # where Ray takes 127.0.0.1 for an address
    if own:  # without a token, whoever reaches the cluster runs code as this user
        settings |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
        settings |= {"RAY_ENABLE_K8S_TOKEN_AUTH": "0"}  # with it, Kubernetes would say who has a token
    return settings


def _reports(
    process: subprocess.Popen[bytes], log: IO[bytes], function: Callable[[_Spec], _Report], specs: Iterable[_Spec]
) -> Iterator[_Report]:
    """Send the specs from a thread, and yield the reports."""
    faults: list[BaseException] = []
    answers = cast("IO[bytes]", process.stdout)
    feeding = threading.Thread(target=_feed, args=(process.stdin, function, specs, faults), daemon=True)
    feeding.start()
    ended = False
    with suppress(EOFError, pickle.UnpicklingError):
        while True:
            kind, value = pickle.load(answers)  # noqa: S301  # of our own child
            if kind == "end":
                ended = True
                break
            if kind == "error":
                raise value
            yield value
    if faults:
        raise faults[0]
    if not ended:
        what = f"Ray ended before its work was done: {_last_words(log)}"
        raise TaskError(what, "check RAY_ADDRESS and the cluster, or leave out --engine ray", code="MM900")


def _feed(
    pipe: IO[bytes], function: Callable[[_Spec], _Report], specs: Iterable[_Spec], faults: list[BaseException]
) -> None:
    """Write the function, the current folder, the outputs and the specs; what making the specs raises is kept."""
    try:
        with suppress(BrokenPipeError):
            pickle.dump((function, os.getcwd(), mmprompt.__version__, tuple(REPLACED.values())), pipe)
            for spec in specs:
                pickle.dump(spec, pipe)
                pipe.flush()
            pickle.dump(None, pipe)
            pipe.flush()  # it stays open: its end says that this process is gone
    except BaseException as fault:  # noqa: BLE001  # it belongs to the thread that takes the reports
        faults.append(fault)


def _last_words(log: IO[bytes]) -> str:
    """Return the last line that Ray wrote."""
    log.seek(max(0, log.seek(0, os.SEEK_END) - _LOG_TAIL))
    lines = log.read().decode("utf-8", "replace").strip().splitlines()
    return shown(lines[-1].strip()) if lines else "it wrote no reason"


def _end(process: subprocess.Popen[bytes]) -> None:
    """Let the child end its cluster, which it does when its input ends; kill it if it does not."""
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()
    try:
        process.wait(_ENDING)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
