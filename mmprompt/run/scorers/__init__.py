"""Scorers: each says how good a reply is, from 0 to 1. One file per scorer."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias, cast

from mmprompt.errors import TaskError, nearest, shown
from mmprompt.targets.json_values import JSONValue
from mmprompt.tasks.config import SCORERS

Scorer: TypeAlias = Callable[[str, Sequence[JSONValue], Sequence[str]], float]
"""Takes the reply, the right answers as the row has them, and the texts of the row's choices."""


def scorer_of(scorer: str | Scorer | None, index_base: int | None = None) -> Scorer:
    """Return a scorer by its name; one that is a function is returned as it is.

    Without a scorer, rows with choices are scored by ``choice`` and others by ``exact``. ``index_base`` is the number
    of the first choice, where answers are numbers of choices.

    Raises:
        TaskError: no scorer has this name.
    """
    if scorer is None:
        choice, exact = scorer_of("choice", index_base), scorer_of("exact")
        return lambda reply, answers, choices: (choice if choices else exact)(reply, answers, choices)
    if not isinstance(scorer, str):
        return scorer
    if scorer not in SCORERS:
        raise TaskError(f"unknown scorer {shown(scorer)}", nearest(scorer, SCORERS))
    found = getattr(importlib.import_module(f"{__name__}.{scorer}"), scorer)
    return cast("Scorer", partial(found, index_base=index_base) if scorer == "choice" else found)


def name_of(scorer: str | Scorer) -> str:
    """Return the name of a scorer; of a function its own."""
    return scorer if isinstance(scorer, str) else getattr(scorer, "__name__", type(scorer).__name__)


def answers_of(value: JSONValue) -> tuple[JSONValue, ...]:
    """Return the right answers that a row holds: the elements of a list, or the one value; nulls are none."""
    values = value if isinstance(value, list) else [value]
    return tuple([one for one in values if one is not None])
