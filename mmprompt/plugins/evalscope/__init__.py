"""evalscope: the benchmark ``mmprompt``, which ``mmprompt evalscope eval --datasets mmprompt …`` registers."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def run_command(words: Sequence[str]) -> None:
    """Run evalscope's command line with our benchmark registered.

    Raises:
        SystemExit: the command line is wrong, or asks for help.
        MMPromptError: the rows cannot be asked.
    """
    from evalscope.cli.cli import run_cmd  # noqa: PLC0415  # loads with the command

    import mmprompt.plugins.evalscope.benchmark  # noqa: F401, PLC0415  # registers the benchmark

    sys.argv = ["evalscope", *words]
    run_cmd()
