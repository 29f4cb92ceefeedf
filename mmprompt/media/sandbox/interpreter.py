"""Starts the interpreter of a child process, with the pipes between it and its parent."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys

from mmprompt.errors import PolicyError, shown
from mmprompt.media.sandbox.jobs import MOST_IN_FILE
from mmprompt.media.sandbox.memory import INSIDE

_PIPE = 1 << 20
"""Bytes that a pipe should hold, for media that do not go through the file. Linux allows this much by default."""
_BOOT = (
    "import sys; numbers = [*map(int, sys.argv[1:6])]; sys.path[:] = sys.argv[6:]; "
    "from mmprompt.media.sandbox.child import serve; serve(*numbers)"
)
_NAMES_KEPT = ("PATH", "HOME", "LANG", "TMPDIR", "TZ", "SYSTEMROOT")
_PREFIXES_KEPT = ("LC_", "LD_", "DYLD_")
_ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
_KEPT_HEAP = {"MALLOC_TRIM_THRESHOLD_": 1 << 28, "MALLOC_MMAP_THRESHOLD_": 1 << 25, "MALLOC_TOP_PAD_": 1 << 24}
"""Settings of glibc: freed memory stays with the child for the next picture. Returning it to the system and faulting it
in again takes 4.5 ms a picture."""


def start_child(memory_bytes: int) -> tuple[subprocess.Popen[bytes], int, int, int, int]:
    """Start a child. Return it with our ends of its pipes: its life, to write jobs to, and to read answers from.

    The last descriptor is that of its media file, a file in memory; -1 where the system has none.
    """
    executable = _executable()
    ours: list[int] = []
    theirs: list[int] = []
    started = False
    try:
        for is_read_here in (False, False, True):
            reads, writes = map(_above_streams, os.pipe())
            ours.append(reads if is_read_here else writes)
            theirs.append(writes if is_read_here else reads)
        ours.append(_media_file())
        process = _spawn(executable, [*theirs, ours[-1]], memory_bytes)
        started = True
    except OSError as error:
        raise PolicyError(f"the decoding process does not start ({error.strerror})", HINT) from None
    finally:
        for end in theirs if started else ours + theirs:
            if end >= 0:
                os.close(end)
    life, jobs, answers, media_file = ours
    os.set_blocking(jobs, False)
    _widen(jobs)
    _widen(answers)
    return process, life, jobs, answers, media_file


def _media_file() -> int:
    """Return a descriptor of a new file in memory; -1 if the system has none, or might end us for the size of it."""
    import resource  # noqa: PLC0415  # POSIX only

    most, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    if most != resource.RLIM_INFINITY and most < MOST_IN_FILE:
        return -1
    try:
        return _above_streams(os.memfd_create("mmprompt"))
    except (AttributeError, OSError):
        return -1


def _above_streams(descriptor: int) -> int:
    """Return the descriptor under a number from 3 on: where the host's standard streams are closed, it may be lower.

    The child's own standard streams would then take its place.
    """
    import fcntl  # noqa: PLC0415  # POSIX only

    if descriptor > 2:
        return descriptor
    try:
        return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3)
    finally:
        os.close(descriptor)


def _widen(pipe: int) -> None:
    """Let a pipe hold ``_PIPE`` bytes, where the system has a call for it and the user has that much left."""
    import fcntl  # noqa: PLC0415  # POSIX only

    if hasattr(fcntl, "F_SETPIPE_SZ"):
        with contextlib.suppress(OSError):
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE)


def _spawn(executable: str, descriptors: list[int], memory_bytes: int) -> subprocess.Popen[bytes]:
    # -S: the child gets our import path, so it need not look for one
    words = [executable, "-I", "-S", "-B", "-c", _BOOT, *map(str, descriptors), str(memory_bytes), *_import_path()]
    return subprocess.Popen(  # noqa: S603  # no part of it comes from data
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        close_fds=True,
        pass_fds=[descriptor for descriptor in descriptors if descriptor >= 0],
        cwd=os.sep,
        env=_environment(),
        start_new_session=True,  # a Ctrl-C in the terminal is for the host
    )


HINT = "name a Python with multiprocessing.set_executable(PATH), or decode in this process with isolate=False"


def _executable() -> str:
    """Return the Python that children run: the one that the host set for multiprocessing, or the host's own."""
    if not hasattr(select, "poll"):
        raise PolicyError(
            "this system cannot isolate decoders (isolate, which --policy hostile sets); Linux and macOS can",
            "choose another policy, or decode in this process with isolate=False",
        )
    if INSIDE in os.environ:
        raise PolicyError("a decoding process cannot start another one", "decode in it with isolate=False")
    spawn = sys.modules.get("multiprocessing.spawn")
    named = sys.executable if spawn is None else spawn.get_executable()
    executable = os.fsdecode(named) if named else ""
    if not executable:
        raise PolicyError("no Python was found to run the decoding process", HINT)
    if getattr(sys, "frozen", False) and executable == sys.executable:
        raise PolicyError(f"{shown(os.path.basename(executable))} is a frozen program, not a Python", HINT)
    return executable


def _import_path() -> list[str]:
    """Return the absolute folders of our ``sys.path``, the package's own among them."""
    import mmprompt  # noqa: PLC0415  # the package may still be importing this module

    own = os.path.dirname(os.path.dirname(os.path.abspath(mmprompt.__file__)))
    path = [folder for folder in sys.path if isinstance(folder, str) and os.path.isabs(folder)]
    return path if own in path else [*path, own]


def _environment() -> dict[str, str]:
    """Return what a child needs of our environment. The host's keys and passwords are not part of it."""
    kept = {k: v for k, v in os.environ.items() if k in _NAMES_KEPT or k.startswith(_PREFIXES_KEPT)}
    heap = {name: str(size) for name, size in _KEPT_HEAP.items()}
    return {**kept, **dict.fromkeys(_ONE_THREAD, "1"), **heap, INSIDE: "1"}
