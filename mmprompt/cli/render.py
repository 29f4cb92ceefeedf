"""``mmprompt render``: a task or a dataset, to one line of JSON per row."""

from __future__ import annotations

import argparse
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

from mmprompt.cli import FINDINGS, OK, say
from mmprompt.errors import DatasetError, MMPromptError, RowError, TaskError, nearest, shown

if TYPE_CHECKING:
    from mmprompt.media.changes import Changes
    from mmprompt.render import Renderer, RenderReport
    from mmprompt.tasks import Task

EMITS = ("messages", "prompt", "string", "batch")
MEDIA = ("inline", "file", "url", "keep")
POLICIES = ("trusted", "default", "hostile")
MODALITIES = ("image", "audio", "video")
_NOTES_SHOWN = 20
_CHANGES = ("fit", "max_pixels", "max_side", "frames", "fps", "audio_rate")

_EPILOG = """\
examples:
  mmprompt render vqa.jsonl -o requests.jsonl
  mmprompt render task.yaml --emit string --limit 5
  mmprompt render vqa.jsonl --target anthropic -o claude.jsonl
  mmprompt render vqa.csv --media file --media-root /data/images
  mmprompt render vqa.jsonl --fetch --allow-domain images.example.com
  cat vqa.jsonl | mmprompt render - --media-root images > requests.jsonl

Rows go out in order, one JSON object a line. A row that cannot be rendered is
reported on standard error and left out; the exit code is then 1.
"""


def add_parser(commands: Any) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "render",
        help="turn a task or a dataset into requests",
        description="Turn a task or a dataset into requests.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("input", metavar="TASK_OR_DATASET", help="a task file, a dataset file, or - for standard input")
    parser.add_argument("-o", "--output", metavar="OUT.jsonl", help="where to write; by default standard output")
    parser.add_argument(
        "--emit", type=_one_of(EMITS), default="messages", metavar="WHAT", help="messages, prompt, string or batch"
    )
    parser.add_argument(
        "--target",
        default="vllm",
        metavar="TARGET",
        help="wire form of messages: vllm, openai, anthropic, gemini or hf",
    )
    parser.add_argument("--media", type=_one_of(MEDIA), metavar="HOW", help="media are sent inline, file, url or keep")
    parser.add_argument(
        "--media-root", action="append", default=[], metavar="DIR", help="media may lie here (repeatable)"
    )
    parser.add_argument(
        "--fetch", action="store_true", help="fetch http(s) media of the allowed hosts, to send them inline"
    )
    parser.add_argument(
        "--allow-domain", action="append", default=[], metavar="HOST", help="a host to fetch from (repeatable)"
    )
    parser.add_argument(
        "--policy",
        type=_one_of(POLICIES),
        metavar="NAME",
        help="limits of media: trusted, default, or hostile (decoders in a child process)",
    )
    parser.add_argument(
        "--read-also",
        action="append",
        default=[],
        metavar="FORMAT",
        help="read pictures of this format too, tiff or avif (repeatable; --fit converts them)",
    )
    parser.add_argument("--fit", action="store_true", default=None, help="change media as little as the target needs")
    parser.add_argument("--max-pixels", type=_natural, metavar="N", help="scale larger pictures and frames down to N")
    parser.add_argument("--max-side", type=_natural, metavar="N", help="likewise, to a longest side of N pixels")
    parser.add_argument("--frames", type=_natural, metavar="N", help="send N frames of each video, evenly in time")
    parser.add_argument("--fps", type=float, metavar="F", help="send F frames a second of each video")
    parser.add_argument("--audio-rate", type=_natural, metavar="HZ", help="resample sound")
    parser.add_argument("--media-cache", metavar="DIR", help="keep changed media here, for further runs")
    parser.add_argument("--dataset", metavar="FILE", help="the dataset, in place of the task's own")
    parser.add_argument("--train", metavar="FILE", help="the file that holds the examples, with --dataset")
    parser.add_argument("--abbr", metavar="NAME", help="which dataset of a runner's config, where it has several")
    parser.add_argument("--format", metavar="NAME", help="the dataset's format, where it is not recognised")
    parser.add_argument("--map", action="append", default=[], metavar="COLUMN=MODALITY", help="a column of media")
    parser.add_argument("--limit", type=_natural, metavar="N", help="read at most N rows")
    parser.add_argument("--strict", action="store_true", help="stop at the first row that cannot be rendered")
    parser.add_argument("--workers", type=_natural, default=1, metavar="N", help="threads that render (1)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Render, and return the exit code.

    Raises:
        MMPromptError: the task, dataset or an option is at fault.
        OSError: the output cannot be written.
    """
    from mmprompt.render import render  # noqa: PLC0415  # loads with the command

    for given in (arguments.input, arguments.dataset):
        if arguments.output and given and os.path.isfile(given) and _same_file(given, arguments.output):
            raise TaskError(f"{shown(arguments.output)} is what is read", "write to another file")
    task = _task(arguments)
    notes = _Notes()
    renderer = _renderer(arguments, task, notes)
    try:
        with closing(renderer), _logged(notes.add), _progress() as advance, _output(arguments.output) as writer:
            report = render(
                renderer,
                task.samples(),
                writer,
                limit=arguments.limit,
                strict=arguments.strict,
                workers=arguments.workers,
                on_error=_report,
                on_note=notes.add,
                on_row=advance,
            )
            if report.failed and not report.rendered:
                raise _NothingRendered  # noqa: TRY301  # it must leave the output's block by an exception
    except _NothingRendered:
        say("mmprompt: no row could be rendered, nothing was written")
        return FINDINGS
    except MMPromptError as error:
        of_row = error.where.line is not None and (isinstance(error, RowError) or not isinstance(error, DatasetError))
        if not (arguments.strict and of_row):
            raise
        say(str(error))
        if arguments.output is not None:
            say("mmprompt: stopped at this row (--strict), nothing was written")
        return FINDINGS
    return _told(report, [*notes.texts(), *task.notes()])


def _renderer(arguments: argparse.Namespace, task: Task, notes: _Notes) -> Renderer:
    from mmprompt.media.changes import Changes  # noqa: PLC0415  # loads with the command
    from mmprompt.media.store.cache import MediaCache  # noqa: PLC0415  # loads with the command
    from mmprompt.render import Renderer  # noqa: PLC0415  # likewise
    from mmprompt.task_media import KEPT, task_policy  # noqa: PLC0415  # likewise

    changes = _changes(task, arguments)
    if arguments.media_cache is not None and changes == Changes():
        notes.add("--media-cache keeps media that were changed, and no change is asked for: nothing will be kept")
    return Renderer(
        task,
        emit=arguments.emit,
        target=arguments.target,
        media=arguments.media,
        policy=task_policy(
            task,
            preset=arguments.policy,
            roots=arguments.media_root,
            fetch=arguments.fetch,
            allow_domains=arguments.allow_domain,
            read_also=arguments.read_also,
        ),
        changes=changes,
        cache=None if arguments.media_cache is None else MediaCache(KEPT, arguments.media_cache),
    )


def _told(report: RenderReport, notes: Iterable[str]) -> int:
    """Say what a run did, and return its exit code."""
    for note in notes:
        say(f"note: {note}")
    if not report.failed and not report.repeated:
        return OK
    total = report.rendered + report.failed
    again = f", {report.repeated} of the ids came again" if report.repeated else ""
    say(f"mmprompt: {report.rendered} of {total} rows rendered, {report.failed} left out{again}")
    return FINDINGS


class _NothingRendered(Exception):  # noqa: N818  # no error: it only leaves the block that would publish the output
    """Every row failed: an output that is there already stays as it is."""


class _Notes:
    """The first notes of a run, and how many more there were: a million rows may all have the same small fault."""

    def __init__(self) -> None:
        self._first: list[str] = []
        self._more = 0

    def add(self, note: str) -> None:
        """Keep the note, or count it."""
        if len(self._first) < _NOTES_SHOWN:
            self._first.append(note)
        else:
            self._more += 1

    def texts(self) -> list[str]:
        """Return a line for each note kept, and one for the others."""
        return [*self._first, f"… and {self._more} more such notes"] if self._more else self._first


def _task(arguments: argparse.Namespace) -> Task:
    from mmprompt.task_files import is_task_file  # noqa: PLC0415  # loads with the command
    from mmprompt.tasks import dataset_task, load_task  # noqa: PLC0415  # likewise

    columns = dict(_mapped(item) for item in arguments.map)
    if arguments.input == "-" and sys.stdin is None:
        raise TaskError("standard input is closed", "give the name of a file")
    if is_task_file(arguments.input):
        if columns or (arguments.format is not None and arguments.dataset is None):
            raise TaskError("--map and --format are for a dataset", "say it in the task file")
        named = None if arguments.dataset is None else {"path": arguments.dataset, "format": arguments.format}
        if named is not None and arguments.train is not None:
            named["train"] = arguments.train
        return load_task(arguments.input, named, abbr=arguments.abbr)
    if arguments.dataset is not None:
        raise TaskError("--dataset is for a task file", "give the dataset alone, or a task file")
    return dataset_task(arguments.input, format=arguments.format, map_columns=columns)


def _changes(task: Task, arguments: argparse.Namespace) -> Changes:
    """Return the changes of media that are asked for; none for prompts, which hold what the sample says.

    Raises:
        TaskError: one is asked for here, of prompts.
    """
    from mmprompt.media.changes import Changes  # noqa: PLC0415  # loads with the command
    from mmprompt.task_media import task_changes  # noqa: PLC0415  # likewise

    given = {name: value for name in _CHANGES if (value := getattr(arguments, name)) is not None}
    if arguments.emit != "prompt":
        return task_changes(task, **given)
    if given:
        named = ", ".join("--" + name.replace("_", "-") for name in given)
        raise TaskError(f"{named} with --emit prompt", "a prompt holds its media as the sample does; emit messages")
    return Changes()


def _same_file(one: str, other: str) -> bool:
    return os.path.exists(other) and os.path.samefile(one, other)


def _mapped(item: str) -> tuple[str, str]:
    column, separator, modality = item.rpartition("=")
    if not separator or modality not in MODALITIES:
        raise TaskError(f"--map {item} names no modality", f"write COLUMN=MODALITY; {nearest(modality, MODALITIES)}")
    return column, modality


def _natural(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{shown(text)} is no number from 1")
    return int(text)


def _one_of(known: tuple[str, ...]) -> Callable[[str], str]:
    """Return what reads an argument that must be one of the known words."""

    def read(text: str) -> str:
        if text not in known:
            raise argparse.ArgumentTypeError(f"unknown {shown(text)}; {nearest(text, known)}")
        return text

    return read


@contextmanager
def _output(path: str | None) -> Iterator[Any]:
    """Open the output: standard output; a temporary file that takes its name in the end; or what is no regular file."""
    from mmprompt.targets.chunk_writer import ChunkWriter  # noqa: PLC0415  # loads with the command

    if path is None or path == "-":
        if sys.stdout is None:
            raise TaskError("standard output is closed", "name a file with -o")
        sys.stdout.flush()
        yield ChunkWriter(sys.stdout.buffer)
        return
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb", buffering=0) as file:
            yield ChunkWriter(file)
        return
    target = os.path.realpath(path)
    # no process number in the name: a container gives the same one to each run, and an earlier one may have been killed
    temporary = os.path.join(os.path.dirname(target), f".{os.path.basename(target)[:60]}.{os.urandom(6).hex()}.part")
    try:
        file = open(temporary, "xb", buffering=0)  # noqa: SIM115  # closed below
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from None
    try:
        with file:
            yield ChunkWriter(file)
        if os.path.exists(target):
            os.chmod(temporary, stat.S_IMODE(os.stat(target).st_mode))
        try:
            os.replace(temporary, target)
        except OSError as error:
            raise OSError(error.errno, error.strerror, path) from None
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise


@contextmanager
def _progress() -> Iterator[Callable[[], object] | None]:
    """Give what to call after each row: a progress bar if standard error is a terminal, else nothing."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    from tqdm import tqdm  # noqa: PLC0415  # only on a terminal

    with tqdm(unit=" rows", mininterval=0.2, file=sys.stderr) as bar:
        yield bar.update


@contextmanager
def _logged(tell: Callable[[str], object]) -> Iterator[None]:
    """Tell what the package warns of in its log (a cache folder that cannot be used), each kind of warning once."""
    from logging import Handler, LogRecord  # noqa: PLC0415  # loaded with the log

    from mmprompt.log import log  # noqa: PLC0415  # loads with the command

    kinds = set()

    class Told(Handler):
        def emit(self, record: LogRecord) -> None:
            if record.msg not in kinds:
                kinds.add(record.msg)
                tell(record.getMessage())

    told = Told()
    log.addHandler(told)
    try:
        yield
    finally:
        log.removeHandler(told)


def _report(error: MMPromptError) -> None:
    say(str(error))
