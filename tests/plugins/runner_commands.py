"""What the tests of lm-eval, lmms-eval, evalscope and deepeval share: the runners' own commands over the tour."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from recording_server import recording_server
from test_tour_over_http import arrived, expected

from mmprompt import load_task

SECONDS = 600
Words = Callable[[str], "list[object]"]
"""Returns a runner's command for a server's base URL."""


class Run(NamedTuple):
    """One run of a runner's command: its exit code, what it printed, and what the server was asked."""

    code: int
    said: str
    bodies: list[dict[str, Any]]


def run_words(folder: Path, words: list[object], **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a console command that is installed beside this interpreter."""
    program, *rest = map(str, words)
    own = {name: value for name, value in os.environ.items() if name != "PYTEST_DISABLE_PLUGIN_AUTOLOAD"}  # deepeval's
    beside = {**own, "HF_HUB_OFFLINE": "1", "OPENAI_API_KEY": "none", "NO_COLOR": "1", "COLUMNS": "1000"}
    return subprocess.run(
        [str(Path(sys.executable).with_name(program)), *rest],
        cwd=folder,
        env={**beside, "DEEPEVAL_TELEMETRY_OPT_OUT": "YES", **variables},
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=SECONDS,
        check=False,
    )


def run_command(
    folder: Path,
    words: Words,
    reply: Callable[[dict[str, Any]], str] = lambda body: "ok",
    variables: Callable[[str], dict[str, str]] = lambda url: {},
) -> Run:
    """Run a runner's command against a server that records."""
    with recording_server(reply) as server:
        done = run_words(folder, words(server.base_url), **variables(server.base_url))
        return Run(done.returncode, done.stdout + done.stderr, list(server.bodies))


def guide_words(text: str, url: str) -> list[object]:
    """The words of a guide's command, with the server of a test in the place of the guide's."""
    return [*shlex.split(text.replace("http://127.0.0.1:8000/v1", url))]


def copy_tour(tour: Path, folder: Path) -> Path:
    """Copy the tour to where the guides' examples expect it, and return its main dataset."""
    shutil.copytree(tour, folder / "fixtures/tour")
    return folder / "fixtures/tour/tour.jsonl"


def rendered(path: Path, **options: Any) -> dict[str, dict[str, Any]]:
    """The requests of a task file or dataset as ``mmprompt render`` writes them, by id."""
    requests = load_task(str(path)).requests(**options)
    return {str(r.id): {"messages": r.messages, "answers": r.answers, "media": r.media} for r in requests}


def text_of(messages: object) -> str:
    return json.dumps(messages, sort_keys=True)


class Tour:
    """The tour: what must be asked, and the replies, of which every third is wrong."""

    def __init__(self, lines: dict[str, dict[str, Any]], as_sent: Callable[[Any], Any] = lambda messages: messages):
        self.lines = lines
        self.by_text = {text_of(as_sent(line["messages"])): name for name, line in lines.items()}
        assert len(self.by_text) == len(lines)
        self.right = {name for number, name in enumerate(lines) if number % 3 != 2}

    @property
    def score(self) -> float:
        return len(self.right) / len(self.lines)

    def reply(self, body: dict[str, Any]) -> str:
        name = self.by_text[text_of(body["messages"])]
        return str(self.lines[name]["answers"][0]) if name in self.right else "no idea"

    def check(self, run: Run) -> None:
        """Check that the run ended well and each row was asked once, as ``mmprompt render`` writes it."""
        assert run.code == 0, run.said[-5000:]
        self.check_bodies(run)

    def check_bodies(self, run: Run, warm_up: int = 0) -> list[dict[str, Any]]:
        """Check that each row was asked once, as ``mmprompt render`` writes it, after ``warm_up`` requests more."""
        bodies = run.bodies[warm_up:]
        assert sorted(text_of(body["messages"]) for body in bodies) == sorted(self.by_text), run.said[-5000:]
        return bodies


def check_parts(bodies: list[dict[str, Any]], path: Path, left_out: tuple[str, ...] = ()) -> int:
    """Check the order of the parts and the SHA-256 of each medium, by a reader that shares nothing with the package.

    Return the number of media.
    """
    wanted = [messages for id_, _, messages in expected(path.name, path.parent) if id_ not in left_out]
    assert sorted(map(repr, map(arrived, bodies))) == sorted(map(repr, wanted))
    return sum(part[0] != "text" for messages in wanted for _, parts in messages for part in parts)


def five_faults(folder: Path) -> tuple[Path, list[str]]:
    """Write 60 rows of which five cannot be sent, and return the file and what each fault's line must hold."""
    rows: list[dict[str, Any]] = [{"id": f"r{n}", "question": f"{n}?", "answer": str(n)} for n in range(60)]
    (folder / "rows").mkdir()
    (folder / "out.jpg").write_bytes(b"\xff\xd8\xff\xe0")
    (folder / "rows" / "text.png").write_bytes(b"not a picture")
    faults = {7: "gone.png", 19: "../out.jpg", 23: "text.png", 41: "", 59: "data:image/png;base64,!!"}
    for number, image in faults.items():
        rows[number] |= {"image": image} if image else {"question": None}
    path = folder / "rows" / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path, [f"rows.jsonl:{number + 1}: MM" for number in faults]


@contextmanager
def served_shapes(folder: Path) -> Iterator[str]:
    """Give the base URL of ``mmprompt serve builtin:shapes``, which runs for the block."""
    words = [sys.executable, "-m", "mmprompt", "serve", "builtin:shapes"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=folder) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()
