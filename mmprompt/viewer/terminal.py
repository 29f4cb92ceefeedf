"""Rows as text for a terminal: each prompt by role, media as stubs, and the origin of each text by its style."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from mmprompt.check.reports.report import printable
from mmprompt.datasets.sample import Sample
from mmprompt.errors.findings import Finding
from mmprompt.targets.json_values import JSONObject
from mmprompt.viewer.medium import Medium
from mmprompt.viewer.provenance import Span
from mmprompt.viewer.row_view import MessageView, RequestView, RowView

_RESET = "\x1b[0m"
_STYLES = {
    "title": "\x1b[1m",
    "role": "\x1b[1;34m",
    "template": "\x1b[2m",
    "row": "",
    "computed": "",
    "example": "\x1b[33m",
    "medium": "\x1b[36m",
    "label": "\x1b[35m",
    "error": "\x1b[31m",
    "warning": "\x1b[33m",
    "info": "\x1b[34m",
    "good": "\x1b[32m",
}
_INDENT = "    "
_RULE = 72


class TerminalText(NamedTuple):
    """Writes rows as lines. With ``styled`` they hold the escape codes of terminals."""

    styled: bool

    def lines(
        self, view: RowView, findings: Sequence[Finding] = (), answers: Sequence[JSONObject] = (), answer: object = None
    ) -> Iterator[str]:
        """Yield the lines of a row; ``answers`` are the lines that a journal has on it."""
        yield self._title(view)
        for request in view.requests:
            yield from self._request(request, view.media, several=len(view.requests) > 1)
        if answer is not None:
            yield f"  {self._in('role', 'answer')}  {_one_line(answer)}"
        for each in answers:
            yield f"  {self._in('role', 'model')}  {self._reply(each)}"
        if view.error is not None and not findings:
            findings = [Finding.of(view.error)]
        for finding in findings:
            code = self._in(finding.severity, finding.code)
            hint = f"; {finding.hint}" if finding.hint else ""
            yield f"  {code} {_one_line(finding.message)}{_one_line(hint)}"

    def legend(self) -> str:
        """Return the line that says which style means what; empty without styles."""
        if not self.styled:
            return ""
        words = [self._in(name, f"from the {name}") for name in ("row", "template")]
        return "  ".join([*words, self._in("example", "from an example"), self._in("medium", "[media]")])

    def _in(self, style: str, text: str) -> str:
        begin = _STYLES[style] if self.styled else ""
        return f"{begin}{text}{_RESET}" if begin else text

    def _title(self, view: RowView) -> str:
        row = view.row
        if isinstance(row, Sample):
            line = "" if row.line is None else f":{row.line}"
            words = f"{_one_line(row.label)}  {_one_line(row.file or '')}{line}".rstrip()
        else:
            words = _one_line(row.where)
        return self._in("title", f"── {words} ".ljust(_RULE, "─"))

    def _request(self, request: RequestView, media: Sequence[Medium], *, several: bool) -> Iterator[str]:
        if several:
            name = f"turn {request.turn}" if request.turn is not None else f"label {_one_line(request.label)}"
            yield f"  {self._in('label', name)}"
        for message in request.messages:
            yield f"  {self._in('role', _one_line(message.role))}"
            yield from self._message(message, media)
        if request.dropped:
            yield f"  {self._in('warning', f'{request.dropped} examples had no room')}"

    def _message(self, message: MessageView, media: Sequence[Medium]) -> Iterator[str]:
        for part in message.parts:
            if part.medium is not None:
                yield _INDENT + self._in("medium", _one_line(media[part.medium].stub))
            else:
                yield from self._text(part.spans)
        for key, value in message.beside.items():
            yield f"{_INDENT}{self._in('label', _one_line(key))} {_one_line(value)}"

    def _text(self, spans: Sequence[Span]) -> Iterator[str]:
        line = ""
        for span in spans:
            first, *more = printable(span.text, "\n").split("\n")
            line += self._in(span.origin, first) if first else ""
            for each in more:
                yield _INDENT + line
                line = self._in(span.origin, each) if each else ""
        yield _INDENT + line

    def _reply(self, line: Mapping[str, Any]) -> str:
        turn = "" if line.get("turn") is None else f"turn {line['turn']}: "
        if line.get("error") is not None:
            return turn + self._in("error", _one_line(line["error"]))
        words = turn + _one_line(line.get("prediction", ""))
        score = line.get("score")
        if not isinstance(score, (int, float)):
            return words
        return f"{words}  {self._in('good' if score >= 1 else 'error', f'score {score:g}')}"


def _one_line(value: object) -> str:
    return printable(str(value).replace("\n", "⏎"))
