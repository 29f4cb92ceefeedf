"""What tasks, requests and journals show of themselves in a notebook: static HTML, bounded in size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from html import escape
from itertools import islice
from typing import TYPE_CHECKING, Any

from mmprompt.check.reports.report import printable
from mmprompt.errors import MMPromptError
from mmprompt.media.base64_text import encode_text
from mmprompt.messages import MediaPart
from mmprompt.run.journal import JournalLine, read_journal
from mmprompt.viewer.media_files import EXTENSIONS
from mmprompt.viewer.medium import Medium
from mmprompt.viewer.row_view import MessageView, RequestView, RowViews, request_view
from mmprompt.viewer.short_json import pretty_json

if TYPE_CHECKING:
    from mmprompt.render.request import Request
    from mmprompt.run.task_run import RunReport
    from mmprompt.tasks.task import Task

_ROWS = 3
_REPLIES = 20
_TEXT = 2000
_MEDIA = 1 << 20
"""Bytes of media in one output; further ones are named."""

_STYLE = """<style>
.mmprompt { font: 14px/1.5 system-ui, sans-serif; max-width: 60rem; }
.mmprompt .message { border: 1px solid #8884; border-left: 4px solid #4b83c3; border-radius: 6px; padding: .3rem .8rem;
  margin: .3rem 0; white-space: pre-wrap; overflow-wrap: anywhere; }
.mmprompt .role { font-size: .75em; letter-spacing: .06em; text-transform: uppercase; opacity: .7; }
.mmprompt .template { background: #f2c94c55; text-decoration: underline dotted; }
.mmprompt .example { background: #27ae6044; }
.mmprompt .media { opacity: .7; font-size: .85em; }
.mmprompt img, .mmprompt video { max-width: 20rem; max-height: 14rem; display: block; border-radius: 4px; }
.mmprompt .error { color: #c62828; }
.mmprompt pre { white-space: pre-wrap; max-height: 24rem; overflow: auto; }
</style>"""


def task_html(task: Task) -> str:
    """Return the first rows of a task. Rows that can be read once only are left alone."""
    if task.dataset is None or task.dataset.reads_once:
        return _page([f"<p>{_text(repr(task.dataset or 'a task without rows'))}</p>"])
    try:
        with closing(RowViews(task, targets=())) as views:
            return _page(_task_parts(views))
    except MMPromptError as error:
        return _page([_error(error)])


def _task_parts(views: RowViews) -> Iterator[str]:
    room = [_MEDIA]
    yield f"<p>The first rows of {_text(repr(views.task.dataset))}:</p>"
    for row in islice(views.task.samples(), _ROWS):
        view = views.view(row)
        if view.sample is not None:
            yield f"<h4>{_text(view.sample.label)}</h4>"
        if view.error is not None:
            yield _error(view.error)
        for request in view.requests:
            yield from _request_parts(request, view.media, view.parts, room)


def request_html(request: Request) -> str:
    """Return the messages of a request; in the wire forms of other vendors than OpenAI its JSON, media in short."""
    beside = [
        f"{name} {value}" for name, value in (("turn", request.turn), ("label", request.label)) if value is not None
    ]
    title = f"<h4>{_text(' '.join([str(request.id), *beside]))}</h4>"
    messages = request.unencoded.get("messages")
    if not isinstance(messages, list) or len(request.unencoded) > 1:
        return _page([title, f"<pre>{_text(pretty_json(dict(request.unencoded)), 5 * _TEXT)}</pre>"])
    view, media, parts = request_view(messages, request.turn, request.label)
    return _page([title, *_request_parts(view, media, parts, [_MEDIA])])


def report_html(report: RunReport) -> str:
    """Return the counts of a run, and its first replies."""
    kept = f" ({report.kept:,} of them before this run)" if report.kept else ""
    counts = f"{report.answered:,} rows answered{kept}, {report.failed:,} failed"
    head = f"<p>{counts}: <code>{_text(report.journal)}</code></p>"
    try:
        lines = list(islice(read_journal(report.journal), _REPLIES))
    except (MMPromptError, OSError) as error:
        return _page([head, f'<p class="error">{_text(str(error))}</p>'])
    names = "<tr><th>id</th><th>reply</th><th>answer</th></tr>"
    return _page([head, f"<table>{names}{''.join(map(_line, lines))}</table>"])


def _line(line: JournalLine) -> str:
    said = (
        f'<span class="error">{_text(line.error)}</span>'
        if line.error is not None
        else _text(str(line.prediction or ""))
    )
    answer = "" if line.answer is None else str(line.answer)
    return f"<tr><td>{_text(str(line.id))}</td><td>{said}</td><td>{_text(answer)}</td></tr>"


def _page(parts: Sequence[str] | Iterator[str]) -> str:
    return f'<div class="mmprompt">{_STYLE}{"".join(parts)}</div>'


def _error(error: MMPromptError) -> str:
    return f'<p class="error">{_text(f"{error.code} {error}")}</p>'


def _request_parts(
    request: RequestView, media: Sequence[Medium], parts: Sequence[MediaPart | None], room: list[int]
) -> Iterator[str]:
    for message in request.messages:
        yield f'<div class="message"><div class="role">{_text(message.role)}</div>'
        yield from _message_parts(message, media, parts, room)
        yield "</div>"


def _message_parts(
    message: MessageView, media: Sequence[Medium], parts: Sequence[MediaPart | None], room: list[int]
) -> Iterator[str]:
    for part in message.parts:
        if part.medium is not None:
            yield f'{_player(parts[part.medium], room)}<div class="media">{_text(media[part.medium].stub)}</div>'
        for span in part.spans:
            yield f'<span class="{span.origin}">{_text(span.text)}</span>'
    if message.beside:
        yield f"<pre>{_text(_json(message.beside))}</pre>"


def _player(part: MediaPart | None, room: list[int]) -> str:
    """Return the element that shows a medium; empty where there is no room left, or a browser cannot show it."""
    if part is None or part.frames or part.media_type not in EXTENSIONS or len(part.data) > room[0]:
        return ""
    room[0] -= len(part.data)
    source = f"data:{part.media_type};base64,{encode_text(part.data)}"
    if part.modality == "image":
        return f'<img alt="" src="{source}">'
    return f'<{part.modality} controls src="{source}"></{part.modality}>'


def _json(value: Mapping[str, Any]) -> str:
    return pretty_json(dict(value))


def _text(text: str, most: int = _TEXT) -> str:
    """Return a text for HTML, cut if it is long; control characters are escaped."""
    return escape(printable(text if len(text) <= most else f"{text[:most]}\u2026", "\n"))
