"""The options that say which task or dataset a command works on and what it may read; the same for every command."""

from __future__ import annotations

import argparse
import copy
import sys
from math import isfinite, nan
from typing import TYPE_CHECKING

from mmprompt.cli.dataset_options import add_dataset_options, dataset_options, require_none
from mmprompt.errors import TaskError, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mmprompt.datasets.read import Dataset
    from mmprompt.errors.findings import Note
    from mmprompt.media.policy import MediaPolicy
    from mmprompt.tasks.grants import Grants
    from mmprompt.tasks.task import Task


def add_row_options(group: argparse._ArgumentGroup) -> None:
    """Add the options that say which rows."""
    add = group.add_argument
    add("--dataset", metavar="FILE", help="the dataset, in place of the task's own")
    add("--train", metavar="FILE", help="the file that holds the examples, with --dataset")
    add("--abbr", metavar="NAME", help="which dataset of a runner's config, where it has several")
    add_dataset_options(group)
    add("--limit", type=natural, metavar="N", help="read at most N rows")
    add_drop_option(group)


def add_drop_option(group: argparse._ActionsContainer) -> None:
    """Add the option that makes the closing message of a chat its answer."""
    drop = "take the closing assistant message of a chat as its answer, which is not sent"
    group.add_argument("--drop-last-assistant", action="store_true", help=drop)


_LAST_PORT = 65_535

ROWS_PER_SHARD = {"render": 20_000, "check": 2_000, "run": 1_000}
"""Rows of a shard. Checking a row takes longer than rendering it, and asking longer still."""


def add_engine_options(group: argparse._ArgumentGroup, command: str) -> None:
    """Add the options by which a command does its rows in shards."""
    add = group.add_argument
    engine = "cut the rows into shards, done by --workers processes here (local) or on a Ray cluster (ray); one a CPU"
    add("--engine", metavar="NAME", help=engine)
    size = f"with --engine: how many rows a shard has ({ROWS_PER_SHARD[command]})"
    add("--rows-per-shard", type=natural, metavar="N", help=size)


def check_engine_options(arguments: argparse.Namespace) -> None:
    """Refuse a size of shards without an engine.

    Raises:
        TaskError: the options do not go together.
    """
    if arguments.engine is None and arguments.rows_per_shard is not None:
        raise TaskError("--rows-per-shard is for the shards of an engine", "add --engine local, or leave it out")


def add_access_options(group: argparse._ArgumentGroup) -> None:
    """Add the options that say which media may be read."""
    add = group.add_argument
    add("--media-root", action="append", default=[], metavar="DIR", help="media may lie here (repeatable)")
    add("--fetch", action="store_true", help="fetch http(s) media of the allowed hosts, to send them inline")
    add("--allow-domain", action="append", default=[], metavar="HOST", help="a host to fetch from (repeatable)")
    policy = "limits of media: default, hostile (lower limits) or trusted (high limits, decoding in this process)"
    add("--policy", metavar="NAME", help=policy)
    also = "read pictures of this format too, tiff or avif (repeatable; --fit converts them)"
    add("--read-also", action="append", default=[], metavar="FORMAT", help=also)


def task_of(arguments: argparse.Namespace, inputs: Sequence[str]) -> Task:
    """Return the task that a command works on: a task file, or the default task of a dataset.

    Raises:
        MMPromptError: the task or the dataset cannot be opened, or an option does not go with it.
    """
    task = _named_task(arguments, inputs)
    drop_last(arguments, task.dataset, task)
    return task


def drop_last(arguments: argparse.Namespace, dataset: Dataset | None, task: Task) -> None:
    """Make the closing messages of a dataset's chats the answers, if the option asks for it."""
    from mmprompt.datasets.openai_chat import LastAssistant  # noqa: PLC0415  # loads with the command

    if dataset is not None and arguments.drop_last_assistant:
        dataset.change = LastAssistant(task.output_column)


def _named_task(arguments: argparse.Namespace, inputs: Sequence[str]) -> Task:
    from mmprompt.datasets.store_url import as_named  # noqa: PLC0415  # loads with the command
    from mmprompt.tasks.files import TypedPath, is_task_file  # noqa: PLC0415  # loads with the command
    from mmprompt.tasks.load import dataset_task, load_file  # noqa: PLC0415  # loads with the command

    options = dataset_options(arguments)
    inputs = [as_named(name) for name in inputs]
    first = inputs[0]
    if first == "-" and sys.stdin is None:
        raise TaskError("standard input is closed", "give the name of a file")
    if arguments.train is not None and arguments.dataset is None:
        raise TaskError("--train goes with --dataset", "give both, or set dataset.train in a task file")
    if is_task_file(first):
        if len(inputs) > 1:
            raise TaskError(f"{shown(inputs[1])} beside a task file", "give its rows with --dataset FILE")
        require_none(arguments, but=("format",) if arguments.dataset is not None else ())
        named = None if arguments.dataset is None else {"path": as_named(arguments.dataset), "format": arguments.format}
        if named is not None and arguments.train is not None:
            named["train"] = as_named(arguments.train)
        return load_file(TypedPath(first), named, _grants(arguments), abbr=arguments.abbr)
    if arguments.dataset is not None:
        raise TaskError("--dataset is for a task file", "give the dataset alone, or a task file")
    if arguments.abbr is not None:
        raise TaskError("--abbr is for the config of a runner", "remove it")
    return dataset_task(first if len(inputs) == 1 else inputs, **options)


def drop_notes(task: Task) -> list[Note]:
    """Return a note if closing messages are asked for as answers, and no chat had such a message."""
    from mmprompt.datasets.openai_chat import LastAssistant  # noqa: PLC0415  # loads with the command
    from mmprompt.errors.findings import Note  # noqa: PLC0415  # loads with the command

    last = None if task.dataset is None else task.dataset.change
    what = "no chat ends with a message of the assistant, so drop_last_assistant takes no answer"
    return [Note("MM701", what)] if isinstance(last, LastAssistant) and not last.taken else []


def other_dataset(arguments: argparse.Namespace, task: Task) -> Dataset:
    """Return the dataset ``--against``, with the columns of the one that the task reads.

    Raises:
        MMPromptError: it cannot be opened.
    """
    from mmprompt.datasets.read import open_dataset  # noqa: PLC0415  # loads with the command

    options, section = dataset_options(arguments), task.config.dataset
    other = open_dataset(
        arguments.against,
        columns=section.get("columns") or options["map_columns"],
        key=section.get("key"),
        encoding=section.get("encoding") or options["encoding"],
        templates=task.assembly is not None,
    )
    other.change = None if task.dataset is None else copy.copy(task.dataset.change)
    return other


def _grants(arguments: argparse.Namespace) -> Grants:
    """Return what the options allow a task file of data to use."""
    from mmprompt.tasks.grants import Grants  # noqa: PLC0415  # loads with the command

    lists = (arguments.media_root, arguments.allow_domain, arguments.read_also)
    roots, domains, formats = map(tuple, lists)
    return Grants(arguments.policy, roots, arguments.fetch, domains, formats)


def policy_of(arguments: argparse.Namespace, task: Task) -> MediaPolicy:
    """Return which media may be read, as the task and the options say."""
    from mmprompt.tasks.media import granted_policy  # noqa: PLC0415  # loads with the command

    return granted_policy(task, _grants(arguments))


def natural(text: str) -> int:
    """Return the whole number from 1 that an option names."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{shown(text)} is not a whole number from 1")
    return int(text)


def positive(text: str) -> float:
    """Return the number above 0 that an option names."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0.0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{shown(text)} is not a number above 0")
    return number


def number(text: str) -> float:
    """Return the finite number that an option names."""
    try:
        found = float(text)
    except ValueError:
        found = nan
    if not isfinite(found):
        raise argparse.ArgumentTypeError(f"{shown(text)} is not a number")
    return found


def share(text: str) -> float:
    """Return the number from 0 to 1 that an option names."""
    found = number(text)
    if not 0 <= found <= 1:
        raise argparse.ArgumentTypeError(f"{shown(text)} is not a number from 0 to 1, such as 0.8")
    return found


def integer(text: str) -> int:
    """Return the whole number that an option names."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{shown(text)} is not a whole number") from None


def port(text: str) -> int:
    """Return the number of the port that an option names."""
    if not text.isdecimal() or int(text) > _LAST_PORT:
        raise argparse.ArgumentTypeError(
            f"{shown(text)} is not a port; give a number to {_LAST_PORT}, 0 for a free one"
        )
    return int(text)
