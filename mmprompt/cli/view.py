"""``mmprompt view``: shows what a task sends, and what a model answered."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import closing, suppress
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from mmprompt.cli import OK, say
from mmprompt.cli.dataset_options import tell_format
from mmprompt.cli.task_options import add_access_options, add_row_options, natural, policy_of, port, task_of
from mmprompt.errors import TaskError, nearest, shown

if TYPE_CHECKING:
    from mmprompt.cli import Commands
    from mmprompt.datasets.sample import Row
    from mmprompt.errors.findings import Finding
    from mmprompt.tasks.task import Task
    from mmprompt.viewer.exhibit import Exhibit
    from mmprompt.viewer.terminal import TerminalText
    from mmprompt.viewer.viewed_rows import Choice, ViewedRow

_MOST_KNOWN = 1000
"""Of how many rows the ids are known, for an id that no row has."""

_EPILOG = """\
examples:
  mmprompt view vqa.jsonl
  mmprompt view task.yaml --id q-14
  mmprompt view task.yaml -n -c 3
  mmprompt view task.yaml --html page.html
  mmprompt view run.jsonl --html page.html
  mmprompt view before.jsonl after.jsonl --html page.html

On a terminal one prompt is shown after the other: Enter shows the next one, q
ends. Text from the template is dim, text from the row is plain. Media are shown
in short; what mmprompt check finds stands below.
"""


def add_parser(commands: Commands) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "view",
        help="show the prompts of a task or a dataset",
        description="Show the prompts of a task or a dataset, by role.",
        epilog=_EPILOG,
    )
    what = "a task file, a dataset (a file, a folder, a pattern, or - for standard input), or the journal of a run"
    parser.add_argument("input", metavar="TASK_OR_DATASET_OR_JOURNAL", help=what)
    parser.add_argument("other", nargs="?", metavar="OTHER", help="another one, to compare it with on a page")
    group = parser.add_argument_group("what is shown")
    add = group.add_argument
    add("--target", default="vllm", metavar="TARGET", help="the wire form: vllm, openai, anthropic, gemini or hf")
    add("--fit", action="store_true", help="change media as little as each target needs, as mmprompt render --fit does")
    add("--html", metavar="OUT.html", help="write a page that shows all with its media, for a browser")
    add("--serve", action="store_true", help="show the page from a server on this machine, for many rows")
    add("--port", type=port, default=0, metavar="N", help="the port of --serve (a free one)")
    add("-n", "--non-interactive", action="store_true", help="do not wait after each prompt, and show the first ones")
    add("-a", "--all", action="store_true", help="show all prompts without waiting")
    add("-c", "--count", type=natural, metavar="COUNT", help="how many prompts -n shows (1)")
    add("--journal", metavar="FILE", help="the journal with the replies, where the input is no journal")
    add("--no-check", action="store_true", help="do not look for findings")
    add("--no-decode", action="store_true", help="do not look inside media")
    rows = parser.add_argument_group("which rows")
    add_row_options(rows)
    rows.add_argument("--id", action="append", default=[], metavar="ID", help="the sample of this id (repeatable)")
    rows.add_argument("-p", "--pattern", metavar="PATTERN", help="samples whose id matches, such as 'geo-*'")
    workers = "threads that check rows, each with one decoding process (1)"
    rows.add_argument("--workers", type=natural, default=1, metavar="N", help=workers)
    add_access_options(parser.add_argument_group("what may be read"))
    parser.set_defaults(run=run, replaces=("html",))


def run(arguments: argparse.Namespace) -> int:
    """Show the rows, and return the exit code.

    Raises:
        MMPromptError: an option is wrong, or the task cannot be opened.
    """
    if arguments.other is not None and arguments.serve:
        raise TaskError("--serve shows one input", "leave out the other one, or write a page with --html OUT.html")
    if arguments.other is not None and arguments.html is None:
        raise TaskError("two inputs are compared on a page", "add --html OUT.html")
    if arguments.serve:
        return _serve(arguments)
    if arguments.html is not None:
        return _page(arguments)
    return _in_terminal(arguments)


class _Picked:
    """Says which rows are picked by their ids, and remembers which ids there are."""

    def __init__(self, ids: list[str], pattern: str | None) -> None:
        self._pattern = pattern
        self._ids = frozenset(ids)
        self._unmet = {*ids, *([] if pattern is None else [pattern])}
        self._known: list[str] = []
        self.count = 0

    def __call__(self, row: Row) -> bool:
        if isinstance(row, Exception):
            return False
        label = row.label
        if len(self._known) < _MOST_KNOWN:
            self._known.append(label)
        by_pattern = self._pattern is not None and fnmatchcase(label, self._pattern)
        picked = {*([label] if label in self._ids else []), *([self._pattern] if by_pattern else [])}
        self._unmet -= picked
        self.count += bool(picked)
        return bool(picked)

    def require_all(self, limit: int | None) -> None:
        """Refuse ids that no row has, unless the rows were not all read.

        Raises:
            TaskError: no row has an id, or matches the pattern.
        """
        wanted = min(self._unmet, default=None)
        if wanted is None or (limit is not None and self.count >= limit):
            return
        what = "no row has an id that matches" if wanted == self._pattern else "no row has the id"
        near = nearest(wanted, self._known)
        first = f"the first id is {shown(self._known[0])}" if self._known else "there are no rows"
        raise TaskError(f"{what} {shown(wanted)}", near if near.startswith("did") else first)


def _exhibit(arguments: argparse.Namespace, name: str, journal: str | None = None) -> Exhibit:
    """Return a task, a dataset or a journal as the options say."""
    from mmprompt.viewer.exhibit import Exhibit, journal_exhibit  # noqa: PLC0415  # loads with the command
    from mmprompt.viewer.replies import Replies, is_journal  # noqa: PLC0415  # loads with the command

    if journal is None and is_journal(name):
        exhibit = journal_exhibit(name, arguments.dataset)
        for note in exhibit.notes:
            say(f"note: {note.finding}")
        return exhibit
    title = os.path.basename(name.rstrip("/"))
    task = task_of(arguments, [name])
    tell_format(task.dataset, arguments.format)
    return Exhibit(title, task, None if journal is None else Replies(journal))


def _page(arguments: argparse.Namespace) -> int:
    from mmprompt.datasets.output import check_output  # noqa: PLC0415  # loads with the command
    from mmprompt.viewer.view import write_page  # noqa: PLC0415  # loads with the command

    check_output(arguments.html)
    exhibits = [_exhibit(arguments, arguments.input, arguments.journal)]
    exhibits += [] if arguments.other is None else [_exhibit(arguments, arguments.other)]
    choice = _choice(arguments, exhibits[0].task)
    report = write_page(exhibits, arguments.html, choice)
    beside = "" if report.folder is None else f", its media in {report.folder}"
    say(f"mmprompt: {report.rows:,} samples, {report.size:,} bytes written to {report.path}{beside}")
    _require_picked(choice)
    return OK


def _serve(arguments: argparse.Namespace) -> int:
    from mmprompt.run.interruption import ended_by_signals  # noqa: PLC0415  # loads with the command
    from mmprompt.viewer.served_rows import ServedRows  # noqa: PLC0415  # loads with the command
    from mmprompt.viewer.server import PageServer  # noqa: PLC0415  # loads with the command

    exhibit = _exhibit(arguments, arguments.input, arguments.journal)
    choice = _choice(arguments, exhibit.task)
    with suppress(KeyboardInterrupt), ended_by_signals(), closing(ServedRows(exhibit, choice)) as rows:
        try:
            server = PageServer(rows, arguments.port)
        except OSError as error:
            what = f"port {arguments.port} cannot be used ({error.strerror})"
            raise TaskError(what, "give another with --port, or leave it out for a free one") from None
        with server:
            print(server.address, flush=True)  # noqa: T201  # the answer goes to standard output
            say("mmprompt: open this address in a browser; ^C ends")
            server.serve_forever()
    return OK


def _choice(arguments: argparse.Namespace, task: Task) -> Choice:
    from mmprompt.viewer.viewed_rows import Choice  # noqa: PLC0415  # loads with the command

    limit = arguments.limit
    if arguments.non_interactive and not arguments.all:
        limit = min(limit or sys.maxsize, arguments.count or 1)
    picks = _Picked(arguments.id, arguments.pattern) if arguments.id or arguments.pattern is not None else None
    check, decode = not arguments.no_check, not arguments.no_decode
    policy, workers, fit = policy_of(arguments, task), arguments.workers, arguments.fit
    return Choice(arguments.target, policy, limit, picks, check, decode, workers=workers, fit=fit)


def _in_terminal(arguments: argparse.Namespace) -> int:
    from mmprompt.viewer.row_view import RowViews  # noqa: PLC0415  # loads with the command
    from mmprompt.viewer.terminal import TerminalText  # noqa: PLC0415  # loads with the command
    from mmprompt.viewer.viewed_rows import viewed_rows  # noqa: PLC0415  # loads with the command

    terminal = sys.stdout.isatty()
    text = TerminalText(styled=terminal and not os.environ.get("NO_COLOR"))
    waits = terminal and sys.stdin is not None and sys.stdin.isatty()
    waits = waits and not (arguments.non_interactive or arguments.all)
    exhibit = _exhibit(arguments, arguments.input, arguments.journal)
    task, choice, shown = exhibit.task, _choice(arguments, exhibit.task), 0
    faults: list[Finding] = []
    ended = False
    if legend := text.legend():
        print(f"{legend}\n", flush=True)  # noqa: T201  # it has styles, which say would escape
    with closing(RowViews(task, choice.target, choice.policy, targets=(), fit=choice.fit)) as views:
        for viewed in viewed_rows(task, views, choice):
            if viewed.view is None:
                faults += [each for each in viewed.findings if each.row is None and each.severity == "error"]
                continue
            if ended := bool(shown and waits and not _goes_on()):
                break
            shown += 1
            _show(text, viewed, exhibit)
    for fault in faults:
        say(f"mmprompt: {fault}")
    if not shown:
        say("mmprompt: no row to show")
    for note in [] if arguments.no_check else task.notes():
        if note.code.startswith("MM6") and note.finding.severity == "warning":  # what is not sent, or should not be
            say(f"note: {note.finding}")
    if not ended:
        _require_picked(choice)
    return OK


def _require_picked(choice: Choice) -> None:
    if isinstance(choice.chosen, _Picked):
        choice.chosen.require_all(choice.limit)


def _show(text: TerminalText, viewed: ViewedRow, exhibit: Exhibit) -> None:
    view = viewed.view
    if view is None:
        return
    answer = None if view.sample is None else view.sample.columns.get(exhibit.task.output_column)
    lines = "\n".join(text.lines(view, viewed.findings, exhibit.told(viewed.number), answer))
    sys.stdout.buffer.write(f"{lines}\n\n".encode("utf-8", "backslashreplace"))
    sys.stdout.flush()


def _goes_on() -> bool:
    """Wait for a line; return whether it asks for the next prompt."""
    sys.stderr.write("Enter: next, q: end ")
    sys.stderr.flush()
    line = sys.stdin.readline()
    return bool(line) and line.strip().lower() not in ("q", "quit", "exit")
