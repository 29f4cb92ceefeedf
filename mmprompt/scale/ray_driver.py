"""The driver of Ray, in a process of its own: takes specs from its input, and writes reports to its output."""

from __future__ import annotations

import os
import pickle
import queue
import shutil
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from typing import IO, Any

from mmprompt._version import __version__
from mmprompt.errors import MMPromptError, TaskError
from mmprompt.media.outputs import replacing

_MOST_RETRIES = 100
"""Each row that ends its worker costs two: a shard may have fifty of them."""

_WAITING = 4
"""How many tasks are given to Ray for each CPU, so that none of them waits for the driver."""

_STORE_BYTES = 80 << 20
"""Ray's least: reports are small, and nothing else goes through its object store."""

_SECONDS = 0.5

_About = tuple[Callable[[Any], object], str, str, tuple[str, ...]]
"""A shard function, the folder of the run, its version of the package, and the files that it is about to replace."""


def drive(workers: int, address: str, folder: str) -> None:
    """Run the shards that come, until the input ends.

    Args:
        workers: the most shards at once; 0 for one a CPU.
        address: the cluster's; empty for one of our own.
        folder: where a cluster of our own keeps its files.
    """
    reports = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what Ray prints goes to the log
    specs: queue.SimpleQueue[Any] = queue.SimpleQueue()
    left = threading.Event()
    try:
        about = pickle.load(sys.stdin.buffer)  # noqa: S301  # of our parent
        threading.Thread(target=_receive, args=(specs, left), daemon=True).start()
        _start(workers, address, folder)
        _run(reports, specs, left, workers, about)
        _send(reports, "end", None)
    except MMPromptError as error:
        _send(reports, "error", error)
    finally:
        import_module("ray").shutdown()
        shutil.rmtree(folder, ignore_errors=True)  # the parent may be gone
        os._exit(0)  # threads of Ray may hang


def _receive(specs: queue.SimpleQueue[Any], left: threading.Event) -> None:
    """Take the specs in; an input that ends too early says that the parent is gone."""
    try:
        while (spec := pickle.load(sys.stdin.buffer)) is not None:  # noqa: S301  # of our parent
            specs.put(spec)
        specs.put(None)
        sys.stdin.buffer.read(1)  # until the parent ends
    except (EOFError, OSError, pickle.UnpicklingError):
        specs.put(None)
    left.set()


def _start(workers: int, address: str, folder: str) -> None:
    """Join the cluster, or start one."""
    ray = import_module("ray")  # an extra

    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR", "configure_logging": False}
    if address and address != "local":
        ray.init(address, **quiet)
        return
    ray.init(
        "local",
        num_cpus=workers or None,
        include_dashboard=False,
        object_store_memory=_STORE_BYTES,
        _node_ip_address="127.0.0.1",
        _temp_dir=folder,
        **quiet,
    )


def _run(
    reports: IO[bytes],
    specs: queue.SimpleQueue[Any],
    left: threading.Event,
    workers: int,
    about: _About,
) -> None:
    """Keep tasks in flight until the specs end, and send each report when it comes."""
    ray = import_module("ray")  # an extra

    task = ray.remote(num_cpus=1, max_retries=_MOST_RETRIES)(run_here)
    shared = ray.put(about)
    flying: list[Any] = []
    more = True
    while (more or flying) and not left.is_set():
        most = workers or _WAITING * max(int(ray.cluster_resources().get("CPU", 1)), 1)
        while more and len(flying) < most and not (flying and specs.empty()):
            spec = specs.get()
            more = spec is not None
            if more:
                flying.append(task.remote(shared, spec))
        done, flying = ray.wait(flying, num_returns=1, timeout=_SECONDS) if flying else ([], [])
        for reference in done:
            _send(reports, *_result_of(reference))


def _result_of(reference: Any) -> tuple[str, object]:
    """Return the report of a shard that ended, or its error."""
    ray = import_module("ray")  # an extra

    try:
        kind, value = ray.get(reference)
    except ray.exceptions.RayError as error:
        last = str(error).strip().splitlines()[-1:]
        raise TaskError(
            f"Ray gave a shard up: {type(error).__name__} {''.join(last)}", "see Ray's logs", code="MM900"
        ) from None
    if kind == "error":
        raise value
    return kind, value


def run_here(about: _About, spec: object) -> tuple[str, object]:
    """Run a shard in this worker, in the folder of the run; return its report or its error."""
    function, home, version, outputs = about
    if version != __version__:
        what = f"a node of the cluster has mmprompt {__version__}, and this run is of {version}"
        return "error", TaskError(what, "install the same version on each node", code="MM900")
    if os.path.isdir(home):
        os.chdir(home)
    try:
        with replacing(*outputs):
            return "report", function(spec)
    except (MMPromptError, OSError) as error:
        return "error", error


def _send(reports: IO[bytes], kind: str, value: object) -> None:
    pickle.dump((kind, value), reports)
    reports.flush()
