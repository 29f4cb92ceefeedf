"""What it costs to start: the import over a bare interpreter, and the shortest command."""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

from timing import Row

BAR = 40.0
RENDER_BAR = 90.0
HEAVY = ("transformers", "torch", "av", "soundfile", "numpy", "PIL", "requests", "yaml", "jinja2", "tqdm", "orjson")

_COMMANDS = {
    "bare": [sys.executable, "-c", "pass"],
    "import": [sys.executable, "-c", "import mmprompt"],
    "names": [sys.executable, "-c", "from mmprompt import PromptTemplate, MMPromptTemplate, parse_segments"],
    "version": [sys.executable, "-m", "mmprompt", "--version"],
    "help": [sys.executable, "-m", "mmprompt", "render", "--help"],
}


def start(*, repetitions: int = 25) -> list[Row]:
    """Start each command in turns and compare the medians."""
    seconds: dict[str, list[float]] = {name: [] for name in _COMMANDS}
    for _ in range(repetitions):
        for name, command in _COMMANDS.items():
            begin = time.perf_counter()
            subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
            seconds[name].append(time.perf_counter() - begin)
    median = {name: statistics.median(all_of) * 1000 for name, all_of in seconds.items()}
    over = {name: median[name] - median["bare"] for name in median}
    heavy = _loaded("import mmprompt")
    return [
        Row(
            "import mmprompt, ms over a bare interpreter",
            f"{over['import']:.1f}",
            f"<= {BAR:.0f}",
            over["import"] <= BAR,
        ),
        Row("heavy modules it loads", ", ".join(heavy) or "none", "none", not heavy),
        Row("import of the templates: time added", f"{over['names']:.1f}"),
        Row("mmprompt --version, ms in all (bare interpreter)", f"{median['version']:.1f} ({median['bare']:.1f})"),
        Row("mmprompt render --help, ms in all", f"{median['help']:.1f}"),
        _rendering(repetitions),
    ]


def _rendering(repetitions: int) -> Row:
    """Render one row with an address, and take the CPU time of the start that was disturbed least."""
    row = {"id": "a", "image": "https://example.com/a.jpg", "question": "What is it?", "answer": "a cat"}
    with tempfile.TemporaryDirectory(prefix="mmprompt-bench-") as folder:
        path = os.path.join(folder, "row.jsonl")
        with open(path, "w", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        render = [sys.executable, "-m", "mmprompt", "render", path, "-o", os.path.join(folder, "out.jsonl")]
        spent: dict[str, list[float]] = {"bare": [], "render": []}
        for _ in range(repetitions):
            for name, command in (("bare", _COMMANDS["bare"]), ("render", render)):
                spent[name].append(_cpu(command))
    over = (min(spent["render"]) - min(spent["bare"])) * 1000
    figures = f"{over:.0f} (bare: {min(spent['bare']) * 1000:.0f})"
    return Row(
        "mmprompt render of one row, CPU ms over a bare interpreter", figures, f"< {RENDER_BAR:.0f}", over < RENDER_BAR
    )


def _cpu(command: list[str]) -> float:
    """Return the CPU seconds of a command; its modules are compiled once, as for users."""
    own = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=own, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _loaded(statement: str) -> list[str]:
    """Return which heavy modules a statement loads."""
    code = f"{statement}\nimport sys\nprint(*[m for m in {HEAVY!r} if m in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return ran.stdout.split()
