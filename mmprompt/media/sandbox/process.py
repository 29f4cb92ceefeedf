"""One child process from its parent's side: started, asked, watched, ended."""

from __future__ import annotations

import contextlib
import math
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence

from mmprompt.errors import MMPromptError, PolicyError, shown
from mmprompt.media.sandbox.answers import ERROR, FAULT, LENGTH, MEMORY, RESULT, AnswerError, answer_of
from mmprompt.media.sandbox.pipes import buffers_of, write_some

HARD_LIMIT = sys.platform.startswith("linux")
"""Whether the system enforces the memory limit of a process. Elsewhere (macOS) the parent watches the child."""
WATCH = 0.05
"""Seconds between two looks at the memory of a watched child."""

_FIRST_PIECE, _PIECE = 1 << 16, 1 << 20
_PIPE = 1 << 20
"""Bytes that a pipe should hold, so that a usual picture is written at once. Linux allows this much by default."""
_START = 30.0
_END = 1.0
_BOOT = (
    "import sys; numbers = [*map(int, sys.argv[1:5])]; sys.path[:] = sys.argv[5:]; "
    "from mmprompt.media.sandbox.child import serve; serve(*numbers)"
)
_INSIDE = "MMPROMPT_DECODER_PROCESS"
_NAMES_KEPT = ("PATH", "HOME", "LANG", "TMPDIR", "TZ", "SYSTEMROOT")
_PREFIXES_KEPT = ("LC_", "LD_", "DYLD_")
_ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
_KEPT_HEAP = {"MALLOC_TRIM_THRESHOLD_": 1 << 28, "MALLOC_MMAP_THRESHOLD_": 1 << 25, "MALLOC_TOP_PAD_": 1 << 24}
"""Settings of glibc: freed memory stays with the child for the next picture. Returning it to the system and faulting it
in again takes 4.5 ms a picture."""


class EndedError(Exception):
    """The child is gone or has to be ended: the ``kind`` of end, and a detail of it in words.

    ``used`` if the child had been given other jobs before.
    """

    CRASH = "crash"
    TIME = "time"

    def __init__(self, kind: str, detail: str = "") -> None:
        super().__init__(kind, detail)
        self.kind = kind
        self.detail = detail
        self.used = False


class DecoderProcess:
    """A child that waits for jobs. One thread may use it at a time.

    Raises:
        PolicyError: no child can be started here.
    """

    __slots__ = ("_answers", "_hears", "_jobs", "_life", "_memory", "_process", "_takes", "_used")

    def __init__(self, memory_bytes: int) -> None:
        self._used = False
        self._memory = memory_bytes
        self._process, self._life, self._jobs, self._answers = _start(memory_bytes)
        self._hears = select.poll()
        self._hears.register(self._answers, select.POLLIN)
        self._takes = select.poll()
        self._takes.register(self._jobs, select.POLLOUT)
        try:
            self._receive(time.monotonic() + _START)  # READY; a program that is not Python does not say it
        except EndedError as end:
            self.end()
            raise PolicyError(f"the decoding process does not start ({end.detail or end.kind})", _HINT) from None
        except BaseException:
            self.end()
            raise

    def ask(self, job: Sequence[bytes], seconds: float) -> object:
        """Return the answer to a job (see ``packed_job``) within so many seconds.

        Raises:
            EndedError: there is no answer; end the child.
            MMPromptError: the error that the job raised; the child can be used again.
        """
        try:
            return self._answer(job, seconds)
        except EndedError as end:
            end.used = self._used
            raise
        finally:
            self._used = True

    def _answer(self, job: Sequence[bytes], seconds: float) -> object:
        if self._hears.poll(0):  # an answer without a job must not become the answer to this one
            raise EndedError(EndedError.CRASH, "it answered without a job, or is gone")
        deadline = time.monotonic() + seconds
        try:
            self._send(job, deadline)
        except BrokenPipeError:
            raise self._gone() from None
        kind, value = self._receive(deadline)
        if kind == ERROR and isinstance(value, MMPromptError):
            raise value
        if kind != RESULT:
            raise EndedError(kind if kind in (MEMORY, FAULT) else EndedError.CRASH, str(value))
        return value

    def end(self) -> None:
        """End the child at once, since it keeps nothing, and wait until it is gone."""
        self._close()
        self._process.kill()
        self._process.wait()

    def abandon(self) -> None:
        """Let go of a child that belongs to the process which this one was forked from."""
        self._close()
        self._process.returncode = 0  # this process neither waits for it nor warns about it

    def _close(self) -> None:
        for pipe in (self._life, self._jobs, self._answers):
            os.close(pipe)

    def _send(self, job: Sequence[bytes], deadline: float) -> None:
        queue = buffers_of(job)
        while queue:
            try:
                write_some(self._jobs, queue)
            except BlockingIOError:
                self._wait(self._takes, deadline)

    def _receive(self, deadline: float) -> tuple[str, object]:
        message = bytearray()  # grows with what comes, not with what is announced
        size = LENGTH
        while len(message) < size:
            self._wait(self._hears, deadline)
            piece = os.read(self._answers, _PIECE if message else _FIRST_PIECE)
            if not piece:
                raise self._gone()
            message += piece
            if size == LENGTH <= len(message):
                size += int.from_bytes(message[:LENGTH], "big")
            if size > self._memory:
                raise EndedError(EndedError.CRASH, f"it announced an answer of {size} bytes")
        try:
            return answer_of(memoryview(message)[LENGTH:])
        except AnswerError as error:
            raise EndedError(EndedError.CRASH, f"its answer is malformed: {error}") from None

    def _wait(self, until: select.poll, deadline: float) -> None:
        """Wait until a pipe is ready. Check the time, and the memory where the system does not limit it."""
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                raise EndedError(EndedError.TIME)
            if until.poll(math.ceil(1000 * (left if HARD_LIMIT else min(left, WATCH)))):
                return
            if not HARD_LIMIT and resident_bytes(self._process.pid) > self._memory:
                raise EndedError(MEMORY)

    def _gone(self) -> EndedError:
        """Return how a child ended that closed its pipe."""
        try:
            status = self._process.wait(_END)
        except subprocess.TimeoutExpired:
            return EndedError(EndedError.CRASH, "it closed its pipe")
        if status == -signal.SIGALRM:
            return EndedError(EndedError.TIME)
        return EndedError(EndedError.CRASH, _status_words(status))


def _status_words(status: int) -> str:
    if status >= 0:
        return f"exit status {status}"
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"signal {-status}"


def resident_bytes(pid: int) -> int:
    """Return how much memory a process has in use; 0 if that is unknown."""
    try:
        done = subprocess.run(  # noqa: S603  # no part of it comes from data
            ["/bin/ps", "-o", "rss=", "-p", str(pid)], stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
        return int(done.stdout) << 10
    except (OSError, ValueError):
        return 0


def _start(memory_bytes: int) -> tuple[subprocess.Popen[bytes], int, int, int]:
    """Start a child. Return it with our ends of its pipes: its life, to write jobs to, and to read answers from."""
    executable = _executable()
    ours: list[int] = []
    theirs: list[int] = []
    started = False
    try:
        for is_read_here in (False, False, True):
            reads, writes = os.pipe()
            ours.append(reads if is_read_here else writes)
            theirs.append(writes if is_read_here else reads)
        process = _spawn(executable, theirs, memory_bytes if HARD_LIMIT else 0)
        started = True
    except OSError as error:
        raise PolicyError(f"the decoding process does not start ({error.strerror})", _HINT) from None
    finally:
        for end in theirs if started else ours + theirs:
            os.close(end)
    life, jobs, answers = ours
    os.set_blocking(jobs, False)
    _widen(jobs)
    _widen(answers)
    return process, life, jobs, answers


def _widen(pipe: int) -> None:
    """Let a pipe hold ``_PIPE`` bytes, where the system has a call for it and the user has that much left."""
    import fcntl  # noqa: PLC0415  # POSIX only

    if hasattr(fcntl, "F_SETPIPE_SZ"):
        with contextlib.suppress(OSError):
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE)


def _spawn(executable: str, pipes: list[int], memory_bytes: int) -> subprocess.Popen[bytes]:
    # -S: the child gets our import path, so it need not look for one
    words = [executable, "-I", "-S", "-B", "-c", _BOOT, *map(str, pipes), str(memory_bytes), *_import_path()]
    return subprocess.Popen(  # noqa: S603  # no part of it comes from data
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        close_fds=True,
        pass_fds=pipes,
        cwd=os.sep,
        env=_environment(),
        start_new_session=True,  # a Ctrl-C in the terminal is for the host
    )


_HINT = "name a Python with multiprocessing.set_executable(PATH), or decode in this process with isolate=False"


def _executable() -> str:
    """Return the Python that children run: the one that the host set for multiprocessing, or the host's own.

    Raises:
        PolicyError: there is none, this process is such a child, or the system cannot limit processes.
    """
    if not hasattr(select, "poll"):
        raise PolicyError(
            "this system cannot isolate decoders (isolate, which --policy hostile sets); Linux and macOS can",
            "choose another policy, or decode in this process with isolate=False",
        )
    if _INSIDE in os.environ:
        raise PolicyError("a decoding process cannot start another one", "decode in it with isolate=False")
    spawn = sys.modules.get("multiprocessing.spawn")
    named = sys.executable if spawn is None else spawn.get_executable()
    executable = os.fsdecode(named) if named else ""
    if not executable:
        raise PolicyError("there is no Python to run the decoding process", _HINT)
    if getattr(sys, "frozen", False) and executable == sys.executable:
        raise PolicyError(f"{shown(os.path.basename(executable))} is a frozen program, not a Python", _HINT)
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
    return {**kept, **dict.fromkeys(_ONE_THREAD, "1"), **heap, _INSIDE: "1"}
