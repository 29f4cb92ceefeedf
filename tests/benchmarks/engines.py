"""Render, check or run the same rows without an engine, with ``local`` and with ``ray``: times, and equal outputs.

``python tests/benchmarks/engines.py render 200000`` needs Ray, two cores and 20 GB of temporary disk for the largest
outputs; ``--engines plain local`` needs no Ray. The rows name 400 different JPEGs of about 79 KB. Ray is started before
the clock, on loopback; its workers start within the time. Exits with 1 if outputs differ.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path

from asking import server
from PIL import Image

PICTURES = 400
ENGINES: dict[str, list[str]] = {"plain": [], "local": ["--engine", "local"], "ray": ["--engine", "ray"]}
COMMANDS = {
    "inline": ["render", "-o"],
    "render": ["render", "--media", "file", "-o"],
    "check": ["check", "--output-format", "jsonl", "--output-file"],
    "run": ["run", "--model", "m", "-o"],
}
PHOTOGRAPHS = Path(__file__).parents[2] / "fixtures" / "tour" / "media"


def main() -> int:
    """Measure one command with each engine, in turn, and print a line for each time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("rows", type=int)
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--times", type=int, default=1)
    arguments = parser.parse_args()
    digests = set()
    with ExitStack() as stack:
        rows = _write_rows(Path(stack.enter_context(tempfile.TemporaryDirectory())), arguments.rows)
        if arguments.command == "run":
            os.environ["MMPROMPT_BASE_URL"] = stack.enter_context(server())
        if "ray" in arguments.engines:  # its workers have the environment of its start
            ray = import_module("ray")  # an extra
            ray.init(num_cpus=arguments.workers, include_dashboard=False, _node_ip_address="127.0.0.1")
            os.environ["RAY_ADDRESS"] = ray.get_runtime_context().gcs_address
        for _ in range(arguments.times):
            for engine in arguments.engines:
                seconds, digest = _timed(arguments.command, rows, engine, arguments.workers)
                digests.add(digest)
                print(f"{arguments.command} {arguments.rows:,} {engine:6} {seconds:7.1f} s  {digest}", flush=True)
    print("outputs agree" if len(digests) == 1 else "outputs DIFFER")
    return int(len(digests) > 1)


def _write_rows(folder: Path, rows: int) -> Path:
    """Write the pictures and a file of rows that name them, and return the file."""
    (folder / "media").mkdir()
    photographs = [Image.open(path).convert("RGB") for path in sorted(PHOTOGRAPHS.glob("*.jpg"))]
    for number in range(PICTURES):
        picture = photographs[number % len(photographs)].resize((700 + number, 500 + number % 97))
        picture.save(folder / "media" / f"{number}.jpg", quality=88)
    with open(folder / "rows.jsonl", "w", encoding="utf-8") as file:
        for row in range(rows):
            question = f"What stands in the middle of picture {row}?"
            file.write(json.dumps({"id": row, "image": f"media/{row % PICTURES}.jpg", "question": question}) + "\n")
    return folder / "rows.jsonl"


def _timed(command: str, rows: Path, engine: str, workers: int) -> tuple[float, str]:
    """Run one command; return its seconds and the hash of its output, which is removed."""
    output = rows.with_name(f"{engine}.jsonl")
    line = [sys.executable, "-m", "mmprompt", COMMANDS[command][0], str(rows), *COMMANDS[command][1:], str(output)]
    options = [*ENGINES[engine], "--workers", str(workers)]
    started = time.perf_counter()
    done = subprocess.run([*line, *options], stderr=subprocess.PIPE, text=True, check=False)
    seconds = time.perf_counter() - started
    if done.returncode > 1 or not output.exists():
        raise SystemExit(f"{engine}: exit code {done.returncode}\n{done.stderr}")
    digest = _journal_digest(output) if command == "run" else _digest(output)
    for path in rows.parent.glob(f"{output.name}*"):
        path.unlink()
    return seconds, digest[:12]


def _digest(output: Path) -> str:
    digest = hashlib.sha256()
    with open(output, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _journal_digest(journal: Path) -> str:
    """Return the hash of the lines of a journal in order, without what differs from run to run."""
    lines = []
    with open(journal, encoding="utf-8") as file:
        for text in file:
            line = json.loads(text)
            kept = {name: value for name, value in line.items() if name not in ("seconds", "attempts")}
            lines.append(json.dumps(kept, sort_keys=True))
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
