"""What the tests of AISBench and OpenCompass share: the tasks they run, and their own commands as a user starts them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from recording_server import recording_server

COMMAND_SECONDS = 600
FEW_SHOT = {
    "infer_cfg": {
        "ice_template": {
            "type": "MMPromptTemplate",
            "template": {
                "round": [
                    {"role": "HUMAN", "prompt_mm": "SKELETONS"},
                    {"role": "BOT", "prompt": "{answer}"},
                ]
            },
        },
        "prompt_template": {
            "type": "MMPromptTemplate",
            "ice_token": "</E>",
            "template": {
                "begin": [{"role": "SYSTEM", "fallback_role": "HUMAN", "prompt": "Answer in a few words."}, "</E>"],
                "round": [{"role": "HUMAN", "prompt_mm": "SKELETONS"}, {"role": "BOT", "prompt": "{answer}"}],
            },
        },
        "retriever": {"type": "FixKRetriever", "fix_id_list": [0, 3]},
    }
}
SKELETONS = {
    "text": {"type": "text", "text": "{question}"},
    **{m: {"type": f"{m}_url", f"{m}_url": {"url": f"file://{{{m}}}"}} for m in ("image", "audio", "video")},
}


def few_shot(tour: Path) -> dict[str, Any]:
    """A task whose examples hold a picture and a sound."""
    task: dict[str, Any] = json.loads(json.dumps(FEW_SHOT).replace('"SKELETONS"', json.dumps(SKELETONS)))
    path = str(tour / "tour.jsonl")
    return {"dataset": {"path": path, "train": path}, "reader_cfg": {"output_column": "answer"}, **task}


class Run(NamedTuple):
    """One run of a runner's command."""

    code: int
    log: str
    bodies: list[dict[str, Any]]
    folder: Path

    def found(self, pattern: str) -> Path:
        """The one file below the folder that matches."""
        [file] = self.folder.glob(pattern)
        return file


def run_config(folder: Path, command: str, config: str, *arguments: str, reply: Callable[[dict[str, Any]], str]) -> Run:
    """Run a config, in which PORT stands for the server's port, by the runner's own command."""
    with recording_server(reply) as server:
        (folder / "cfg.py").write_text(config.replace("PORT", str(server.port)), encoding="utf-8")
        program = shutil.which(command, path=str(Path(sys.executable).parent))
        assert program, f"{command} is not beside {sys.executable}"
        done = subprocess.run(
            [program, "cfg.py", *arguments],
            cwd=folder,
            env={**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONWARNINGS": "ignore", "no_proxy": "127.0.0.1"},
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )
        logs = "".join(file.read_text(encoding="utf-8") for file in sorted(folder.glob("out/**/*.out")))
        return Run(done.returncode, done.stdout + done.stderr + logs, list(server.bodies), folder)
