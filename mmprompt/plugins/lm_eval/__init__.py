"""lm-eval: the task class ``Rows``, and the model ``mmprompt-chat``, which asks any OpenAI-compatible server.

``mmprompt lm-eval run --tasks mmprompt --metadata path=vqa.jsonl --model mmprompt-chat …`` needs no file of tasks.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from mmprompt.plugins.lm_eval.model import ChatModel
from mmprompt.plugins.lm_eval.rows import Rows

__all__ = ["ChatModel", "Rows", "run_command"]


def run_command(words: Sequence[str]) -> None:
    """Run lm-eval's command line with our model registered and, unless it names a folder of tasks, our task.

    Raises:
        SystemExit: the command line is wrong, or asks for help.
        MMPromptError: the rows cannot be asked.
    """
    from lm_eval.__main__ import cli_evaluate  # noqa: PLC0415  # loads with the command

    folder = [] if any(word.startswith("--include_path") for word in words) else _TASKS
    asks = words and (words[0] == "run" or words[0].startswith("--"))
    sys.argv = ["lm-eval", *words, *(folder if asks else [])]
    cli_evaluate()


_TASKS = ["--include_path", os.path.dirname(__file__)]
