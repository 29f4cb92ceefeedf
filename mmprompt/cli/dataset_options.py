"""The options that say how a dataset is read, the same for every command."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from mmprompt.cli import say
from mmprompt.errors import TaskError, nearest

if TYPE_CHECKING:
    from mmprompt.datasets.read import Dataset

NAMES = ("format", "map", "key", "join", "split", "encoding")


def add_dataset_options(group: argparse._ArgumentGroup) -> None:
    """Add the options to a group of a command's."""
    add = group.add_argument
    add("--format", metavar="NAME", help="the dataset's format, where it is not recognised")
    add("--map", action="append", default=[], metavar="COLUMN=ROLE", help=f"what a column is: {_ROLES} (repeatable)")
    add("--key", metavar="NAME", help="the key of a JSON object under which the rows stand")
    add("--join", action="append", default=[], metavar="FILE:COLUMN", help="add the columns of another file's rows")
    add("--split", metavar="NAME", help="which split, where a folder or the rows have several")
    add("--encoding", metavar="NAME", help="the encoding of text that is not UTF-8")


_PLAIN = ("jsonl", "json", "csv", "tsv", "openai", "mm_custom")
_ROLES = "image, audio, video, question, answer, id, choices, hint or system"


def dataset_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the options as arguments of ``dataset_task``.

    Raises:
        TaskError: ``--map`` names no role.
    """
    return {
        "format": arguments.format,
        "map_columns": dict(_mapped(item) for item in arguments.map),
        "key": arguments.key,
        "join": arguments.join,
        "split": arguments.split,
        "encoding": arguments.encoding,
    }


def named_files(arguments: argparse.Namespace) -> list[str]:
    """Return the files that a command names to be read."""
    given = [getattr(arguments, name, None) for name in ("input", "dataset", "train")]
    files = [file for item in given if item is not None for file in ([item] if isinstance(item, str) else item)]
    return [*files, *[name.rpartition(":")[0] for name in arguments.join]]


def tell_format(dataset: Dataset | None, given: str | None) -> None:
    """Say on standard error which format was recognised, unless it is JSON lines or another plain one."""
    if dataset is not None and given is None and dataset.format not in (*_PLAIN, "rows"):
        say(f"mmprompt: {dataset.path} is read as {dataset.format}")


def require_none(arguments: argparse.Namespace, *, but: tuple[str, ...] = ()) -> None:
    """Refuse the options beside a task file, which says itself how its dataset is read.

    Raises:
        TaskError: one is given, and is not among ``but``.
    """
    given = [f"--{name}" for name in NAMES if name not in but and getattr(arguments, name)]
    if given:
        raise TaskError(f"{', '.join(given)} beside a task file", "write it into the task file, under dataset:")


def _mapped(item: str) -> tuple[str, str]:
    from mmprompt.datasets.column_roles import ROLES  # noqa: PLC0415  # loads with the command

    column, separator, role = item.rpartition("=")
    if not separator or role not in ROLES:
        raise TaskError(f"--map {item} names no role", f"write COLUMN=ROLE; {nearest(role, ROLES)}")
    return column, role
