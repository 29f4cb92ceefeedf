"""What ``mmprompt render`` writes, to the byte: exit code, length and SHA-256 of the output for each command line.

``fixtures/golden_outputs.json`` holds them by command line, as typed in the root of the repository. The output of
``--media file`` has absolute addresses, so the repository's own folder is replaced by ``/repository`` in every output.
After a change that is meant, ``python tests/render/test_golden_outputs.py --record`` writes the file again.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from mmprompt.cli import main

ROOT = Path(__file__).resolve().parent.parent.parent
GOLDEN = ROOT / "fixtures" / "golden_outputs.json"
TASKS = "tests/render/golden_tasks"
TARGETS = ("vllm", "openai", "anthropic", "gemini", "hf")
EMITS = ("messages", "prompt", "string", "batch")


def commands() -> list[str]:
    """Return the command lines, without ``mmprompt render`` and ``-o``."""
    every_form = [f"--target {target} --emit {emit}" for emit in EMITS for target in TARGETS]
    both = ("fixtures/tour/task.yaml", "fixtures/tour/tour.jsonl")
    lines = [f"{source} {form}" for source in (*both, "fixtures/broken/broken.jsonl") for form in every_form]
    # these two name a model, so that batch lines can be written
    lines += [f"{TASKS}/meta_template_with_media.yaml --media-root fixtures/tour {form}" for form in every_form]
    lines += [f"{TASKS}/faults.yaml --media-root fixtures/broken {form}" for form in every_form]
    for path in sorted((ROOT / TASKS).glob("*.yaml")):
        lines += [f"{TASKS}/{path.name} --media-root fixtures/tour --emit {emit}" for emit in EMITS]
        lines += [f"{TASKS}/{path.name} --media-root fixtures/tour --target {target}" for target in TARGETS]
    for name in ("tour_columns.jsonl", "tour_mm_custom.jsonl", "tour_chat.jsonl", "tour.csv", "tour.json"):
        lines += [f"fixtures/tour/{name} --target {target}" for target in TARGETS]
        lines += [f"fixtures/tour/{name} --emit {emit}" for emit in ("prompt", "string")]
    for source in (*both, "fixtures/tour/tour_chat.jsonl", "fixtures/broken/broken.jsonl"):
        modes = ("inline", "file", "url", "keep")
        lines += [f"{source} --media {mode} --target {target}" for mode in modes for target in TARGETS]
        lines += [f"{source} --media {mode} --emit string" for mode in ("file", "url", "keep")]
        lines += [f"{source} --policy {name}" for name in ("trusted", "default", "hostile")]
        lines += [f"{source} --workers 3", f"{source} --limit 2", f"{source} --strict"]
    lines += [
        "fixtures/tour/tour_columns.jsonl --map question=image",
        "fixtures/tour/tour.csv --format csv",
        "fixtures/tour/tour.csv --format jsonl",
        "fixtures/tour/tour.jsonl --media-root fixtures/broken",
        f"{TASKS}/examples_in_text.yaml --dataset fixtures/tour/tour.csv --train {TASKS}/train.jsonl",
        "fixtures/tour/nowhere.jsonl",
        "fixtures/tour/tour.jsonl --target nobody",
        "fixtures/tour/tour.jsonl --emit nothing",
    ]
    return list(dict.fromkeys(lines))


def outcome(command: str, folder: Path) -> dict[str, Any]:
    """Run one command line in the root of the repository, and return what is recorded of it."""
    written = folder / "out.jsonl"
    written.unlink(missing_ok=True)
    try:
        code: Any = main(["render", *command.split(), "-o", str(written)])
    except SystemExit as end:  # of argparse: an option is wrong
        code = end.code
    output = written.read_bytes() if written.exists() else b""
    output = output.replace(os.fsencode(ROOT), b"/repository")
    return {"exit": code, "bytes": len(output), "sha256": hashlib.sha256(output).hexdigest() if output else ""}


@pytest.fixture(scope="module")
def golden() -> dict[str, Any]:
    return dict(json.loads(GOLDEN.read_text(encoding="utf-8")))


@pytest.mark.parametrize("command", commands())
def test_the_output_is_the_same_to_the_byte(
    command: str, golden: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert outcome(command, tmp_path) == golden[command]


def test_each_recorded_command_line_is_run(golden: dict[str, Any]) -> None:
    assert list(golden) == commands()
    assert {recorded["exit"] for recorded in golden.values()} == {0, 1, 2}
    assert all(recorded["bytes"] == 0 for recorded in golden.values() if recorded["exit"] == 2)


def test_each_combination_of_target_and_form_is_recorded(golden: dict[str, Any]) -> None:
    for source in ("fixtures/tour/task.yaml", "fixtures/tour/tour.jsonl", "fixtures/broken/broken.jsonl"):
        forms = [(target, emit) for target in TARGETS for emit in EMITS]
        assert not [form for form in forms if f"{source} --target {form[0]} --emit {form[1]}" not in golden]


def record() -> None:
    os.chdir(ROOT)
    with tempfile.TemporaryDirectory() as folder:
        found = {command: outcome(command, Path(folder)) for command in commands()}
    lines = [f"{json.dumps(command)}: {json.dumps(recorded)}" for command, recorded in found.items()]
    GOLDEN.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:] != ["--record"]:
        sys.exit("pass --record to write fixtures/golden_outputs.json again")
    record()
