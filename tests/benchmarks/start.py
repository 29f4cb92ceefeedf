"""What it costs to start: the import over a bare interpreter, and the shortest command."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

from timing import Row

BAR = 40.0
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
        Row("import of the templates, likewise", f"{over['names']:.1f}"),
        Row("mmprompt --version, ms in all (bare interpreter)", f"{median['version']:.1f} ({median['bare']:.1f})"),
        Row("mmprompt render --help, ms in all", f"{median['help']:.1f}"),
    ]


def _loaded(statement: str) -> list[str]:
    """Return which heavy modules a statement loads."""
    code = f"{statement}\nimport sys\nprint(*[m for m in {HEAVY!r} if m in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return ran.stdout.split()
