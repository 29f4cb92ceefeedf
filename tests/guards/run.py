"""Switches off each guard of the threat tables in turn: ``python tests/guards/run.py [--rows] [WORD]``.

Which guards there are says ``table.py``; with words, only those whose names hold one of them. Each is switched off in a
copy of the package, and the tests of its threat run against that copy. If they all pass, the tests of their folders do,
and then the whole default suite; ``--rows`` leaves these out. A test that fails or hangs has seen the guard. A line for
each says which. Exits with 1 if more than one guard is not seen, or if a test fails while every guard is there.
"""

from __future__ import annotations

import contextlib
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from queue import SimpleQueue

from guard import Guard
from table import GUARDS, SOURCE, TESTS, named_tests, texts_without

AT_ONCE = 2
SECONDS = 120.0
"""How long the tests of a row may take, or four times as long as they take without a change. A hang ends there."""

WIDE_SECONDS = 3600.0
MOST_MEMORY = 4 << 30
"""Bytes of a process. Some guards keep a template or a server from taking all memory."""

LEFT_OUT = f"--ignore={TESTS / 'guards'}"
"""The tests of the table, which see that its texts are not there."""

_FAILED = re.compile(r"^(?:FAILED|ERROR) \S*?(tests/.+?)(?: - .*)?$", re.MULTILINE)
_WHY = re.compile(r"^E +(\S.*)$", re.MULTILINE)


class Copy:
    """A copy of the package, against which tests run: it is first on the path of each process that they start."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        shutil.copytree(SOURCE, folder / "mmprompt", ignore=shutil.ignore_patterns("__pycache__"))
        # an editable install must not win, wherever a test starts a process
        look = "import sys; sys.path.remove(''); import mmprompt; print(mmprompt.__file__)"
        found = self._run([sys.executable, "-c", look], SECONDS)[1].strip()
        if not Path(found).is_relative_to(folder):
            raise SystemExit(f"the tests would not run against the copy, but against {found}")

    @contextlib.contextmanager
    def without(self, guard: Guard) -> Iterator[None]:
        """Have a guard switched off in the copy for the time of a ``with`` block."""
        texts = texts_without(guard)
        self._write(texts)
        try:
            yield
        finally:
            self._write({file: (SOURCE / file).read_text(encoding="utf-8") for file in texts})

    def _write(self, texts: dict[str, str]) -> None:
        for file, text in texts.items():
            path = self._folder / "mmprompt" / file
            path.write_text(text, encoding="utf-8")
            for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*"):  # it goes by seconds and size
                compiled.unlink()

    def fault(self, words: Sequence[str], seconds: float) -> str:
        """Return which test fails first, and how; empty if all pass.

        Raises:
            SystemExit: the tests cannot be collected: what stands in the place of a guard breaks the package.
        """
        code, said = self._run([*pytest_words(), "-x", *words], seconds)
        if code in (0, 5):
            return ""
        found = _FAILED.search(said)
        if code in (2, 3, 4) or (found and "::" not in found[1]):
            raise SystemExit(f"pytest ends with {code}:\n{said[-2000:]}")
        if found:
            why = _WHY.search(said)
            return f"{found[1]} ({why[1][:150] if why else 'no message'})"
        return "a test that hangs" if code is None else f"a test that ends the process ({code})"

    def _run(self, words: Sequence[str], seconds: float) -> tuple[int | None, str]:
        """Run a command, and return its exit code with what it prints; no code if it was ended."""
        environment = {**os.environ, "PYTHONPATH": str(self._folder)}
        with tempfile.TemporaryFile("w+") as output:
            process = subprocess.Popen(
                words,
                cwd=self._folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            code: int | None
            try:
                code = process.wait(seconds)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                _end_all(process)
            output.seek(0)
            return code, output.read()


def pytest_words() -> list[str]:
    """Return the beginning of a command that runs tests of this tree."""
    own = [f"--rootdir={TESTS.parent}", "-c", str(TESTS.parent / "pyproject.toml")]
    return [sys.executable, "-m", "pytest", *own, "-q", "-rfE", "--tb=short", "-p", "no:cacheprovider"]


def _end_all(process: subprocess.Popen[bytes]) -> None:
    """End what is left of the group of a process."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def paths_of(tests: Sequence[str]) -> list[str]:
    """Return tests by their whole paths: they run in the folder of the copy. Those that need Ray go without it."""
    here = [test for test in tests if "test_ray_" not in test or find_spec("ray")]
    return [str(TESTS.parent / test) for test in here]


def seconds_of_tests(copy: Copy, guards: Sequence[Guard]) -> dict[str, float]:
    """Run the tests of all these guards while every guard is there, and return how long each takes."""
    tests = sorted({test for guard in guards for test in named_tests(guard)})
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        words = [f"--junit-xml={report}", "-o", "junit_family=xunit1", "-n", str(AT_ONCE), "-m", "", *paths_of(tests)]
        if fault := copy.fault(words, WIDE_SECONDS):
            raise SystemExit(f"without a change fails {fault}")
        taken: dict[str, float] = {}
        for case in ET.parse(report).iter("testcase"):
            name = f"{case.get('file')}::{(case.get('name') or '').partition('[')[0]}"
            taken[name] = taken.get(name, 0.0) + float(case.get("time") or 0)
    return taken


def seconds_of(test: str, taken: dict[str, float]) -> float:
    """Return how long a test takes, with all of its parameters."""
    return taken.get(test.partition("[")[0], 0.0)


def seen_by(guard: Guard, copy: Copy, taken: dict[str, float], *, rows_only: bool) -> str:
    """Return the test that sees a guard switched off among those of its row and of their folders."""
    tests = sorted(named_tests(guard), key=lambda test: seconds_of(test, taken))  # the quickest may see it
    usual = sum([seconds_of(test, taken) for test in tests])
    with copy.without(guard):
        fault = copy.fault(["-m", "", *paths_of(tests)], max(SECONDS, 4 * usual))
        if fault or rows_only:
            return fault
        folders = sorted({os.path.dirname(test) for test in tests})
        return copy.fault([*paths_of(folders), LEFT_OUT], WIDE_SECONDS)


def seen_by_all(guard: Guard, copy: Copy) -> str:
    """Return the test of the default suite that sees a guard switched off."""
    with copy.without(guard):
        return copy.fault(["-n", str(AT_ONCE), str(TESTS), LEFT_OUT], WIDE_SECONDS)


def tell(guard: Guard, fault: str) -> None:
    """Print whether a guard is seen, and by which test."""
    print(f"{guard.name}: {f'seen by {fault}' if fault else 'NOT SEEN'}", flush=True)


def main(words: Sequence[str], *, rows_only: bool = False) -> int:
    """Switch off the guards whose names hold one of ``words``, or all."""
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))
    guards = [guard for guard in GUARDS if not words or any(word in guard.name for word in words)]
    with tempfile.TemporaryDirectory(prefix="guards-") as folder:
        copies: SimpleQueue[Copy] = SimpleQueue()
        for number in range(AT_ONCE):
            copies.put(Copy(Path(folder) / str(number)))
        copy = copies.get()
        taken = seconds_of_tests(copy, guards)
        copies.put(copy)

        def look(guard: Guard) -> str:
            own = copies.get()
            try:
                fault = seen_by(guard, own, taken, rows_only=rows_only)
            finally:
                copies.put(own)
            if fault or rows_only:
                tell(guard, fault)
            return fault

        with ThreadPoolExecutor(AT_ONCE) as pool:
            faults = dict(zip(guards, pool.map(look, guards), strict=True))
        for guard in [guard for guard, fault in faults.items() if not fault and not rows_only]:
            faults[guard] = seen_by_all(guard, copy)
            tell(guard, faults[guard])
    seen = sum(map(bool, faults.values()))
    print(f"{seen} of {len(guards)} guards seen")
    return int(len(guards) - seen > 1)


if __name__ == "__main__":
    sys.exit(main([word for word in sys.argv[1:] if word != "--rows"], rows_only="--rows" in sys.argv[1:]))
