"""``mmprompt run``: asks a model the requests of a task, and scores its replies."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from mmprompt.cli import FINDINGS, INTERRUPTED, OK, say
from mmprompt.cli.dataset_options import tell_format
from mmprompt.cli.score import add_report_options, check_reports, tell_scores
from mmprompt.cli.task_options import (
    add_access_options,
    add_engine_options,
    add_row_options,
    check_engine_options,
    integer,
    natural,
    number,
    policy_of,
    positive,
    share,
    task_of,
)
from mmprompt.errors import TaskError, shown

if TYPE_CHECKING:
    from mmprompt.cli import Commands
    from mmprompt.cli.report import ErrorReport, NoteReport
    from mmprompt.errors.findings import Note
    from mmprompt.media.policy import MediaPolicy
    from mmprompt.render.builder import FailedRow
    from mmprompt.run.model import Model
    from mmprompt.run.models import ModelSettings
    from mmprompt.run.runner import RunSettings
    from mmprompt.run.task_run import RunReport
    from mmprompt.tasks.task import Task

_GENERATION = ("temperature", "top_p", "max_tokens", "seed")

_EPILOG = """\
examples:
  mmprompt run vqa.jsonl --base-url http://127.0.0.1:8000/v1 --model qwen
  mmprompt run MMBench_DEV_EN.tsv --base-url http://127.0.0.1:8000/v1 --model qwen
  mmprompt run task.yaml --model builtin:shapes
  mmprompt run task.yaml --model ./SmolVLM-256M --temperature 0 --fail-under 0.8
  mmprompt run vqa.jsonl --model gpt-5-mini --base-url https://api.openai.com/v1
  mmprompt run task.yaml --collect output.jsonl errors.jsonl -o journal.jsonl

The replies are appended to a journal, one JSON object a line. Run the same
command again to go on: rows with a prediction are not asked again. ^C once
finishes what is in flight, twice stops at once.
"""


def add_parser(commands: Commands) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "run",
        help="ask a model and score its replies",
        description="Ask a model the requests of a task or a dataset, and score its replies.",
        epilog=_EPILOG,
    )
    what = "a task file, or a dataset: files, a folder, a pattern, or - for standard input"
    parser.add_argument("input", nargs="+", metavar="TASK_OR_DATASET", help=what)
    journal = "the journal; by default DATASET-MODEL.jsonl in the current folder"
    parser.add_argument("-o", "--output", metavar="NAME.jsonl", help=journal)
    _add_model(parser.add_argument_group("which model"))
    _add_generation(parser.add_argument_group("how it generates"))
    _add_pace(parser.add_argument_group("how the run goes"))
    _add_scores(parser.add_argument_group("how replies are scored"))
    add_row_options(parser.add_argument_group("which rows"))
    add_access_options(parser.add_argument_group("what may be read"))
    parser.set_defaults(run=run, replaces=("errors", "report"))


def _add_model(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    model = "the model's name on the server, the folder of a local model, or builtin:shapes"
    add("--model", metavar="NAME", help=model)
    add("--base-url", metavar="URL", help="the address of an OpenAI-compatible server (or MMPROMPT_BASE_URL)")
    key = "the environment variable that holds the server's key (MMPROMPT_API_KEY)"
    add("--api-key-env", metavar="VARIABLE", help=key)
    header = "a further header, whose value an environment variable holds (repeatable)"
    add("--header", action="append", default=[], metavar="NAME=VARIABLE", help=header)
    results = "ask nobody: take the replies from these result and error files of OpenAI's Batch API"
    add("--collect", nargs="+", default=[], metavar="FILE.jsonl", help=results)
    add("--device", default="cpu", metavar="DEVICE", help="where a local model computes: cpu, cuda or cuda:N (cpu)")
    add("--target", metavar="TARGET", help="what the server accepts: vllm or openai")
    add("--media", metavar="HOW", help="send media inline, by file:// name (file), by URL (url), or as written (keep)")


def _add_generation(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--temperature", type=number, metavar="T", help="0 for the most likely reply")
    add("--top-p", type=share, metavar="P", help="sample from the most likely tokens of this share")
    add("--max-tokens", type=natural, metavar="N", help="the most tokens of a reply")
    add("--seed", type=integer, metavar="N", help="the seed of the sampling")
    parameter = "a further key of each request, its value as JSON (repeatable)"
    add("--param", action="append", default=[], metavar="KEY=JSON", help=parameter)
    add("--repeats", type=natural, default=1, metavar="N", help="ask each row N times")


def _add_pace(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--concurrency", type=natural, metavar="N", help="at most N requests at once (16; local: a batch of 8)")
    add("--rpm", type=positive, metavar="N", help="at most N requests a minute")
    timeout = "how long one attempt may take (600); a row without an answer by then is asked once more at the end"
    add("--timeout", type=positive, metavar="SECONDS", help=timeout)
    add("--workers", type=natural, metavar="N", help="threads that decode media (1)")
    add_engine_options(group, "run")
    add("--retry-errors", action="store_true", help="ask only the rows that stand in the journal with an error")
    add("--overwrite", action="store_true", help="begin the journal anew")
    add("--errors", metavar="FILE.jsonl", help="also write every error to this file, one JSON object a line")


def _add_scores(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--scorer", metavar="NAME", help="exact, contains, choice, anls, vqa or number")
    add("--group-by", action="append", default=[], metavar="COLUMN", help="a column to group by (repeatable)")
    add_report_options(group)


def run(arguments: argparse.Namespace) -> int:
    """Run, and return the exit code.

    Raises:
        MMPromptError: the task, the dataset, the model, the journal or an option is wrong.
        OSError: the journal cannot be written.
    """
    from mmprompt.cli.report import NoteReport, error_report, recorded  # noqa: PLC0415  # loads with the command
    from mmprompt.datasets.output import check_output  # noqa: PLC0415  # loads with the command
    from mmprompt.media.outputs import replacing  # noqa: PLC0415  # loads with the command
    from mmprompt.run.manifest import manifest_path  # noqa: PLC0415  # loads with the command

    check_engine_options(arguments)
    check_output(arguments.errors)
    check_reports(arguments.report)
    beside = [] if arguments.output is None else [manifest_path(arguments.output)]
    with replacing(arguments.output, *beside, arguments.errors, *arguments.report), recorded(arguments.errors):
        check_output(arguments.output)
        settings = _settings(arguments)
        task = task_of(arguments, arguments.input)
        tell_format(task.dataset, arguments.format)
    notes = NoteReport()
    with error_report(arguments.errors) as errors:
        report = _asked(arguments, task, settings, errors, notes)
    for note in (*task.notes(replied=True), *_notes(report)):
        notes.add(note)
    for text in (*errors.texts(), *notes.texts()):
        say(text)
    code = OK
    if report.scores is not None:
        code = tell_scores(report.scores, arguments.report, arguments.fail_under)
    elif not report.interrupted:
        asked = bool(arguments.report) or arguments.fail_under is not None
        if asked or report.answered:
            say("mmprompt: there is no score: no row has a right answer")
        code = FINDINGS if asked else OK
    if report.interrupted:
        again = "the same command without --overwrite" if arguments.overwrite else "the same command"
        say(f"mmprompt: {again} goes on where this run stopped")
    say(_closing(report, notes.count))
    if report.interrupted:
        return INTERRUPTED
    return FINDINGS if report.failed else code


def _settings(arguments: argparse.Namespace) -> RunSettings:
    from mmprompt.run.runner import RunSettings  # noqa: PLC0415  # loads with the command

    options: dict[str, Any] = {name: value for name in _GENERATION if (value := getattr(arguments, name)) is not None}
    for item in arguments.param:
        key, separator, text = item.partition("=")
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            separator = ""
        if not key or not separator:
            raise TaskError(
                f"--param {shown(item)} is not KEY=JSON", "write --param top_k=5, or --param 'stop=[\"\\n\"]'"
            )
        options[key] = value
    return RunSettings(
        options,
        arguments.limit,
        arguments.repeats,
        arguments.workers or 1,
        arguments.concurrency,
        arguments.rpm,
        arguments.retry_errors,
        tuple(arguments.group_by),
    )


def _asked(
    arguments: argparse.Namespace, task: Task, settings: RunSettings, errors: ErrorReport, notes: NoteReport
) -> RunReport:
    from contextlib import closing  # noqa: PLC0415  # loads with the command

    from mmprompt.cli.progress import RowCounter, progress  # noqa: PLC0415  # loads with the command
    from mmprompt.cli.report import logged, tell_stop  # noqa: PLC0415  # loads with the command
    from mmprompt.run.task_run import Hooks, Plan, ask_task  # noqa: PLC0415  # loads with the command
    from mmprompt.tasks.files import is_task_file  # noqa: PLC0415  # loads with the command

    counter = RowCounter()
    policy = policy_of(arguments, task)
    errors.missing.roots = policy.roots
    path = arguments.input[0] if is_task_file(arguments.input[0]) else None
    plan = Plan(path, arguments.scorer, tuple(arguments.header), arguments.overwrite, arguments.media, policy)
    if arguments.engine is not None:
        from mmprompt.cli.engine_run import run_in_shards  # noqa: PLC0415  # loads with the option

        return run_in_shards(arguments, task, _model_settings(arguments, policy), settings, plan, errors, notes)
    model = _model(arguments, task, policy)

    def tell_failed(failed: FailedRow, row: int | None) -> None:
        errors.report(failed, row, counter.rows)
        if counter.tell is not None:
            counter.tell(f"{errors.rows} failed")

    hooks = Hooks(tell_failed, counter, tell_stop)
    with closing(model), logged(notes.add), progress(counter, errors, task.dataset, arguments.limit):
        report = ask_task(task, model, arguments.output, settings, plan, hooks)
    if arguments.collect and settings.limit is None and not report.interrupted:
        _note_unused(model, notes)
    return report


def _model(arguments: argparse.Namespace, task: Task, policy: MediaPolicy) -> Model:
    from mmprompt.media.outputs import replacing  # noqa: PLC0415  # loads with the command
    from mmprompt.run.batch import BatchResults  # noqa: PLC0415  # loads with the command

    if arguments.collect:
        if arguments.base_url is not None:
            raise TaskError("--collect asks no server", "leave out --base-url")
        if arguments.repeats > 1:
            raise TaskError("--collect has one reply to each request", "leave out --repeats")
        name = arguments.model or task.config.model_name
        with replacing(arguments.output):
            return BatchResults(arguments.collect, name, arguments.target or "openai")
    return _model_settings(arguments, policy).model(task)


def _model_settings(arguments: argparse.Namespace, policy: MediaPolicy) -> ModelSettings:
    from mmprompt.run.models import LocalSettings, ModelSettings, ServerSettings  # noqa: PLC0415  # loads with the command

    headers = tuple(arguments.header)
    server = ServerSettings(arguments.target, arguments.timeout, arguments.concurrency, arguments.api_key_env, headers)
    local = LocalSettings(arguments.device, arguments.concurrency, policy)
    return ModelSettings(arguments.model, arguments.base_url, server, local)


def _note_unused(results: Model, notes: NoteReport) -> None:
    """Note the results that belong to no row."""
    from mmprompt.errors.findings import Note  # noqa: PLC0415  # loads with the command
    from mmprompt.run.batch import BatchResults  # noqa: PLC0415  # loads with the command

    unused = results.unused() if isinstance(results, BatchResults) else []
    if unused:
        first = f"the first has the custom_id {shown(unused[0])}"
        what = f"results that belong to no request of the task: {len(unused)}, {first}"
        notes.add(Note("MM024", what, "name the task and the options with which mmprompt render wrote the batch"))


def _notes(report: RunReport) -> Iterator[Note]:
    """Yield notes on what a run found in its journal and among its rows."""
    from mmprompt.errors.findings import Note  # noqa: PLC0415  # loads with the command

    if report.torn:
        what = f"{report.torn} torn line{'s' * (report.torn > 1)} of {report.journal} cannot be read"
        yield Note("MM002", what, "their rows were asked again")
    if report.stale:
        what = f"{report.stale} lines of {report.journal} belong to no row of the dataset any more, and are not scored"
        yield Note("MM900", what, "put the rows back to score their replies again")
    if report.repeated:
        what = f"{report.repeated} rows have the id of an earlier row"
        yield Note("MM009", what, "give each row its own id")
    if not (report.answered or report.failed or report.interrupted):
        yield Note("MM014", "there is no row to ask")


def _closing(report: RunReport, notes: int) -> str:
    """Return the last line: what became of the rows."""
    total = report.answered + report.failed
    counts = [f"{report.failed} failed"]
    if report.kept:
        counts.insert(0, f"{report.kept} of them before this run")
    counts.append(f"{notes or 'no'} note{'s' * (notes != 1)}")
    stopped = "interrupted; " if report.interrupted else ""
    return f"mmprompt: {stopped}{report.answered} of {total} rows answered in {report.journal}; {', '.join(counts)}"
