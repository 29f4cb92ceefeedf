"""``mmprompt render``: turns a task or a dataset into one line of JSON per row."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from mmprompt.cli import FINDINGS, INTERRUPTED, OK, say
from mmprompt.cli.dataset_options import tell_format
from mmprompt.cli.task_options import (
    add_access_options,
    add_engine_options,
    add_row_options,
    drop_notes,
    natural,
    policy_of,
    positive,
    task_of,
)
from mmprompt.errors import TaskError

if TYPE_CHECKING:
    from mmprompt.cli import Commands
    from mmprompt.cli.report import NoteReport
    from mmprompt.media.changes import Changes
    from mmprompt.render.renderer import Renderer
    from mmprompt.tasks.task import Task

_CHANGES = ("fit", "max_pixels", "max_side", "frames", "fps", "audio_rate")

_EPILOG = """\
examples:
  mmprompt render vqa.jsonl -o requests.jsonl
  mmprompt render task.yaml --emit string --limit 5
  mmprompt render vqa.jsonl --target anthropic -o claude.jsonl
  mmprompt render task.yaml --target openai --emit batch --shard-rows 50000 -o batch.jsonl
  mmprompt render vqa.csv --media file --media-root /data/images
  mmprompt render vqa.jsonl --fetch --allow-domain images.example.com
  cat vqa.jsonl | mmprompt render - --media-root images > requests.jsonl

Rows go out in order, one JSON object a line. A row that cannot be rendered is
reported on standard error and left out; the exit code is then 1. On a terminal
the lines show media in short; -o writes them in full.
"""


def add_parser(commands: Commands) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "render",
        help="turn a task or a dataset into requests",
        description="Turn a task or a dataset into requests.",
        epilog=_EPILOG,
    )
    what = "a task file, or a dataset: files, a folder, a pattern, or - for standard input"
    parser.add_argument("input", nargs="+", metavar="TASK_OR_DATASET", help=what)
    parser.add_argument("-o", "--output", metavar="OUT.jsonl", help="where to write; by default standard output")
    _add_form(parser.add_argument_group("what is written"))
    add_row_options(parser.add_argument_group("which rows"))
    add_access_options(parser.add_argument_group("what may be read"))
    _add_changes(parser.add_argument_group("media changed on the way"))
    parser.set_defaults(run=run, replaces=("output", "errors"))


def _add_form(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--emit", default="messages", metavar="WHAT", help="messages, prompt, string or batch")
    add("--target", default="vllm", metavar="TARGET", help="the wire form: vllm, openai, anthropic, gemini or hf")
    add("--media", metavar="HOW", help="send media inline, by file:// name (file), by URL (url), or as written (keep)")
    shards = "write batch files of at most N requests (50000), named by -o and a number, and a manifest"
    add("--shard-rows", type=natural, metavar="N", help=shards)
    add("--shard-bytes", type=natural, metavar="N", help="write batch files of at most N bytes (200000000)")
    add("--strict", action="store_true", help="stop at the first row that cannot be rendered")
    add("--strict-notes", action="store_true", help="exit with 1 if there are notes")
    add("--errors", metavar="FILE.jsonl", help="also write every error to this file, one JSON object a line")
    workers = (
        "threads that decode media, each with one decoding process (1); rows that decode nothing run in one thread"
    )
    add("--workers", type=natural, metavar="N", help=workers)
    add_engine_options(group, "render")
    left = "with --engine: leave each shard as a file, named by -o and a number, and write a manifest"
    add("--shards", action="store_true", help=left)


def _add_changes(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--fit", action="store_true", default=None, help="change media as little as the target needs")
    add("--max-pixels", type=natural, metavar="N", help="scale larger pictures and frames down to N pixels")
    add("--max-side", type=natural, metavar="N", help="scale larger pictures and frames to a longest side of N pixels")
    add("--frames", type=natural, metavar="N", help="send N frames of each video, evenly in time")
    fps = "send F frames a second of each video, with --frames N at most N"
    add("--fps", type=positive, metavar="F", help=fps)
    add("--audio-rate", type=natural, metavar="HZ", help="resample sound")
    add("--media-cache", metavar="DIR", help="keep changed media here, for further runs")


def run(arguments: argparse.Namespace) -> int:
    """Render, and return the exit code.

    Raises:
        MMPromptError: the task, the dataset or an option is wrong.
        OSError: the output cannot be written.
    """
    from mmprompt.cli.rendering import render_rows  # noqa: PLC0415  # loads with the command
    from mmprompt.cli.report import INTERRUPTION, NoteReport, error_report, recorded  # noqa: PLC0415  # for the run
    from mmprompt.cli.shards import shards_of  # noqa: PLC0415  # loads with the command
    from mmprompt.datasets.openai_chat import LastAssistant  # noqa: PLC0415  # loads with the command
    from mmprompt.datasets.output import check_output  # noqa: PLC0415  # loads with the command
    from mmprompt.errors.findings import Note  # noqa: PLC0415  # loads with the command
    from mmprompt.media.outputs import replacing  # noqa: PLC0415  # loads with the command

    check_output(arguments.errors)
    with replacing(*shards_of(arguments)), recorded(arguments.errors):
        check_output(arguments.output)
        task = task_of(arguments, arguments.input)
    change = None if task.dataset is None else task.dataset.change
    last = change if isinstance(change, LastAssistant) else None
    notes = NoteReport()
    with recorded(arguments.errors):
        tell_format(task.dataset, arguments.format)
        renderer = _renderer(arguments, task, notes)
    with error_report(arguments.errors) as errors:
        errors.missing.roots = policy_of(arguments, task).roots
        if arguments.engine is not None:
            from mmprompt.cli.engine import render_in_shards  # noqa: PLC0415  # loads with the option

            outcome = render_in_shards(arguments, task, renderer, errors, notes, last)
        else:
            outcome = render_rows(arguments, task, renderer, errors, notes)
    for note in [*task.notes(), *drop_notes(task)]:
        notes.add(note)
    if not (outcome.written or outcome.left_out or outcome.stopped):
        notes.add(Note("MM014", "there is no row to render"))
    for text in (*errors.texts(), *notes.texts()):
        say(text)
    say(str(outcome._replace(notes=notes.count)))
    if outcome.stopped == INTERRUPTION:
        return INTERRUPTED
    return FINDINGS if errors.count or (arguments.strict_notes and notes.count) else OK


def _renderer(arguments: argparse.Namespace, task: Task, notes: NoteReport) -> Renderer:
    from mmprompt.errors.findings import Note  # noqa: PLC0415  # loads with the command
    from mmprompt.media.changes import Changes  # noqa: PLC0415  # loads with the command
    from mmprompt.render.renderer import Renderer  # noqa: PLC0415  # loads with the command

    cache = None
    if arguments.media_cache is not None:
        from mmprompt.media.cache.cache import MediaCache  # noqa: PLC0415  # loads with the option
        from mmprompt.targets.fitting import CACHE_BYTES  # noqa: PLC0415  # loads with the option

        cache = MediaCache(CACHE_BYTES, arguments.media_cache)
    shows = arguments.output is None and sys.stdout is not None and sys.stdout.isatty()
    if shows:
        from mmprompt.cli.short_lines import short_chunks as chunks  # noqa: PLC0415  # only for a terminal
    else:
        from mmprompt.targets.wire_json import record_chunks as chunks  # noqa: PLC0415  # loads with the command
    changes = _changes(task, arguments)
    if arguments.media_cache is not None and changes == Changes():
        what = "--media-cache keeps changed media, but no change is asked for: nothing will be kept"
        notes.add(Note("MM904", what))
    return Renderer(
        task,
        emit=arguments.emit,
        target=arguments.target,
        media=arguments.media,
        policy=policy_of(arguments, task),
        changes=changes,
        cache=cache,
        chunks=chunks,
        formed=not shows,
    )


def _changes(task: Task, arguments: argparse.Namespace) -> Changes:
    """Return the changes of media that the task and the options ask for. A prompt holds its media unchanged."""
    from mmprompt.media.changes import Changes  # noqa: PLC0415  # loads with the command
    from mmprompt.tasks.media import task_changes  # noqa: PLC0415  # loads with the command

    given = {name: value for name in _CHANGES if (value := getattr(arguments, name)) is not None}
    if arguments.emit != "prompt":
        return task_changes(task, **given)
    if given:
        named = ", ".join("--" + name.replace("_", "-") for name in given)
        raise TaskError(f"{named} with --emit prompt", "use --emit messages: a prompt holds its media unchanged")
    return Changes()
