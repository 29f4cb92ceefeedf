"""YAML files of other runners: which runner's a file is, by its keys."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Union

from mmprompt.tasks.section_values import ConfigValue
from mmprompt.tasks.upstream import lm_eval, promptfoo
from mmprompt.tasks.upstream.config_folder import ConfigFolder
from mmprompt.tasks.upstream.shaped_rows import UpstreamYaml

Reader = Callable[[ConfigFolder, str, Union[str, None]], UpstreamYaml]
"""Reads a file: its folder, its text, and the name that ``--abbr`` gives."""


def upstream_reader(value: ConfigValue, own: Collection[str]) -> Reader | None:
    """Return the reader of a YAML file of another runner; None for a task, whose keys are ``own``."""
    if not isinstance(value, Mapping) or any(key in value for key in own):
        return None
    for marks, reader in ((promptfoo.MARKS, promptfoo.read), (lm_eval.MARKS, lm_eval.read)):
        if not marks.isdisjoint(value):
            return reader
    return None
