"""One child process that decodes, as its parent holds it: started, asked, watched, ended."""

from __future__ import annotations

import math
import os
import select
import signal
import subprocess
import sys
import time
from typing import Any

from mmprompt.errors import MMPromptError, PolicyError, shown
from mmprompt.media.sandbox.answers import AnswerError, answer_of
from mmprompt.media.sandbox.child import ERROR, FAULT, LENGTH, MEMORY, RESULT

HARD_LIMIT = sys.platform.startswith("linux")
"""Whether the system holds a process to its memory limit; elsewhere (macOS) the parent watches."""
WATCH = 0.05
"""Seconds between two looks at the memory of a watched child."""
_PIECE = 1 << 20
_START = 30.0
_END = 1.0
_BOOT = (
    "import sys; jobs, answers, memory = map(int, sys.argv[1:4]); sys.path[:] = sys.argv[4:]; "
    "from mmprompt.media.sandbox.child import serve; serve(jobs, answers, memory)"
)
_INSIDE = "MMPROMPT_DECODER_PROCESS"
_NAMES_KEPT = ("PATH", "HOME", "LANG", "TMPDIR", "TZ", "SYSTEMROOT")
_PREFIXES_KEPT = ("LC_", "LD_", "DYLD_")
_ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


class EndedError(Exception):
    """The child is gone, or has to go: what ``kind`` of end it was, and a detail of it in words."""

    CRASH = "crash"
    TIME = "time"

    def __init__(self, kind: str, detail: str = "") -> None:
        super().__init__(kind, detail)
        self.kind = kind
        self.detail = detail


class DecoderProcess:
    """A child that waits for jobs. For one thread at a time.

    Raises:
        PolicyError: no child can be started here.
    """

    __slots__ = ("_answers", "_hears", "_jobs", "_memory", "_process", "_takes", "jobs")

    def __init__(self, memory_bytes: int) -> None:
        self.jobs = 0
        self._memory = memory_bytes
        self._process, self._jobs, self._answers = _start(memory_bytes)
        self._hears = select.poll()
        self._hears.register(self._answers, select.POLLIN)
        self._takes = select.poll()
        self._takes.register(self._jobs, select.POLLOUT)
        try:
            self._receive(time.monotonic() + _START)  # READY; what is no Python does not say it so
        except EndedError as end:
            self.end()
            raise PolicyError(f"the process for decoders does not start ({end.detail or end.kind})", _HINT) from None
        except BaseException:
            self.end()
            raise

    def ask(self, message: bytes, seconds: float) -> Any:
        """Return the answer to a job within so many seconds.

        Raises:
            EndedError: there is none; end the child.
            MMPromptError: what the job raised; the child is well.
        """
        self.jobs += 1
        if self._hears.poll(0):  # an answer to nothing must not become that to this job
            raise EndedError(EndedError.CRASH, "it spoke unasked, or is gone")
        deadline = time.monotonic() + seconds
        try:
            self._send(message, deadline)
        except BrokenPipeError:
            raise self._gone() from None
        kind, value = self._receive(deadline)
        if kind == ERROR and isinstance(value, MMPromptError):
            raise value
        if kind != RESULT:
            raise EndedError(kind if kind in (MEMORY, FAULT) else EndedError.CRASH, str(value))
        return value

    def end(self) -> None:
        """End the child, at once since it keeps nothing, and wait until it is gone."""
        self._close()
        self._process.kill()
        self._process.wait()

    def abandon(self) -> None:
        """Let go of a child that is another process's, from which this one was forked."""
        self._close()
        self._process.returncode = 0  # neither ours to wait for nor to warn about

    def _close(self) -> None:
        os.close(self._jobs)
        os.close(self._answers)

    def _send(self, message: bytes, deadline: float) -> None:
        view = memoryview(len(message).to_bytes(LENGTH, "big") + message)
        while view:
            try:
                view = view[os.write(self._jobs, view) :]
            except BlockingIOError:
                self._wait(self._takes, deadline)

    def _receive(self, deadline: float) -> tuple[str, Any]:
        size = int.from_bytes(self._read(LENGTH, deadline), "big")
        if size > self._memory:
            raise EndedError(EndedError.CRASH, f"an answer of {size} bytes")
        try:
            return answer_of(self._read(size, deadline))
        except AnswerError as error:
            raise EndedError(EndedError.CRASH, f"no answer: {error}") from None

    def _read(self, size: int, deadline: float) -> bytearray:
        data = bytearray()  # grows with what comes, not with what is announced
        while len(data) < size:
            try:
                piece = os.read(self._answers, min(size - len(data), _PIECE))
            except BlockingIOError:
                self._wait(self._hears, deadline)
                continue
            if not piece:
                raise self._gone()
            data += piece
        return data

    def _wait(self, until: select.poll, deadline: float) -> None:
        """Wait until a pipe is ready; look after time, and after memory where the system does not."""
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
    """Return how much memory a process has in use; 0 where that cannot be told."""
    try:
        done = subprocess.run(  # noqa: S603  # no part of it comes from data
            ["/bin/ps", "-o", "rss=", "-p", str(pid)], stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
        return int(done.stdout) << 10
    except (OSError, ValueError):
        return 0


def _start(memory_bytes: int) -> tuple[subprocess.Popen[bytes], int, int]:
    """Start a child; return it with the ends of its pipes: where jobs are written and where answers are read."""
    executable = _executable()
    ends: list[int] = []
    try:
        ends += os.pipe()  # their jobs, our jobs
        ends += os.pipe()  # our answers, their answers
        process = _spawn([executable, "-I", "-B", "-c", _BOOT], ends[0], ends[3], memory_bytes if HARD_LIMIT else 0)
    except OSError as error:
        raise PolicyError(f"the process for decoders does not start ({error.strerror})", _HINT) from None
    else:
        _, our_jobs, our_answers, _ = ends
        del ends[1:3]  # the others are the child's alone
    finally:
        for end in ends:
            os.close(end)
    os.set_blocking(our_jobs, False)
    os.set_blocking(our_answers, False)
    return process, our_jobs, our_answers


def _spawn(words: list[str], jobs: int, answers: int, memory_bytes: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603  # no part of it comes from data
        [*words, str(jobs), str(answers), str(memory_bytes), *_import_path()],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        close_fds=True,
        pass_fds=(jobs, answers),
        cwd=os.sep,
        env=_environment(),
        start_new_session=True,  # a Ctrl-C in the terminal is for the host
    )


_HINT = "decode in the host itself (isolate=False), or name a Python by multiprocessing.set_executable(PATH)"


def _executable() -> str:
    """Return the Python that children run: what multiprocessing would use, if the host told it, else our own.

    Raises:
        PolicyError: there is none, this is such a child, or the system has no limits for processes.
    """
    if not hasattr(select, "poll"):
        raise PolicyError(
            "isolate (which --policy hostile asks for) is not there on this system, only on Linux and macOS",
            "decode in the host itself: isolate=False, or another policy",
        )
    if _INSIDE in os.environ:
        raise PolicyError("a process for decoders starts no other", "decode in it (isolate=False)")
    spawn = sys.modules.get("multiprocessing.spawn")
    told = sys.executable if spawn is None else spawn.get_executable()
    executable = os.fsdecode(told) if told else ""
    if not executable:
        raise PolicyError("no Python is known that a process for decoders could run", _HINT)
    if getattr(sys, "frozen", False) and executable == sys.executable:
        raise PolicyError(f"{shown(os.path.basename(executable))} is a program of its own, no Python", _HINT)
    return executable


def _import_path() -> list[str]:
    """Return our ``sys.path`` with absolute folders only; the one that the package came from is among them."""
    import mmprompt  # noqa: PLC0415  # the package itself, which is being imported when this module is

    own = os.path.dirname(os.path.dirname(os.path.abspath(mmprompt.__file__)))
    path = [folder for folder in sys.path if isinstance(folder, str) and os.path.isabs(folder)]
    return path if own in path else [*path, own]


def _environment() -> dict[str, str]:
    """Return what a child needs of our environment; keys and passwords of the host are not in it."""
    kept = {k: v for k, v in os.environ.items() if k in _NAMES_KEPT or k.startswith(_PREFIXES_KEPT)}
    return {**kept, **dict.fromkeys(_ONE_THREAD, "1"), _INSIDE: "1"}
