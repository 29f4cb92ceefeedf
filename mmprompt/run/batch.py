"""The results of OpenAI's Batch API, in the place of a model: a run joins them with the rows that they answer."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from mmprompt.datasets.side_files import opened_side
from mmprompt.errors import MMPromptError, ServerError, TaskError, shown
from mmprompt.render.request import Request
from mmprompt.run.model import Answer
from mmprompt.run.reply import reply_of, said_in
from mmprompt.targets import exact_json
from mmprompt.targets.json_values import JSONValue
from mmprompt.targets.wire_json import batch_id

_KEYS = {"custom_id", "response", "error"}


class _Place(NamedTuple):
    """Where a result stands, and whether it holds a reply."""

    file: int
    offset: int
    good: bool


class BatchResults:
    """A ``Model`` that asks nobody: it finds the answer of each request in result files.

    Results and requests belong together by ``custom_id``. If there are several results for a request, the last with a
    reply counts. The memory for a result is about 200 bytes.

    Args:
        paths: the output files and error files of one batch or several, in any order.
        name: the model's name for the journal, by default the one in the first result that names one.
        target: the target that the batch was rendered for.

    Raises:
        TaskError: a file holds no results.
        OSError: a file cannot be read.
    """

    batch = 1
    concurrency = 1

    def __init__(self, paths: Sequence[str], name: str | None = None, target: str = "openai") -> None:
        self.target = target
        self._paths = list(paths)
        self._places: dict[str, _Place] = {}
        self._asked: set[str] = set()
        named = name
        for number, path in enumerate(self._paths):
            good = False
            for offset, result in _results(path):
                good = True
                named = named or _model_of(result)
                self._keep(str(result["custom_id"]), _Place(number, offset, _is_good(result)))
            if not good:
                hint = "give the output file and the error file of a batch"
                raise TaskError(f"{shown(path)} holds no results of a batch", hint)
        self.name = named or "batch"

    def __len__(self) -> int:
        return len(self._places)

    def unused(self) -> list[str]:
        """Return the ids of results that no request asked for."""
        return [name for name in self._places if name not in self._asked]

    def ask(self, requests: Sequence[Request], options: Mapping[str, JSONValue]) -> list[Answer]:  # noqa: ARG002  # a Model's
        """Return the results of requests; one without a result has an error. ``options`` were those of the batch."""
        return [self._answer(request) for request in requests]

    def perplexities(self, requests: Sequence[Request]) -> list[Answer]:
        """Refuse: a batch asks for replies.

        Raises:
            ServerError: always.
        """
        what = f"results of a batch hold no perplexities, which {len(requests)} requests need"
        raise ServerError(what, "run the task on a server or a local model")

    def close(self) -> None:
        """Nothing is open between two calls."""

    def _keep(self, name: str, place: _Place) -> None:
        before = self._places.get(name)
        if before is None or place.good or not before.good:
            self._places[name] = place

    def _answer(self, request: Request) -> Answer:
        name = batch_id(request.id, request.turn)
        place = self._places.get(name)
        if place is None:
            hint = "give its file too, or ask for this row with mmprompt run --retry-errors"
            return Answer(error=ServerError("the batch has no result for this row", hint))
        self._asked.add(name)
        with opened_side(self._paths[place.file], typed=True) as file:
            file.seek(place.offset)
            return _answer_in(_parsed(file.readline()) or {})


def _results(path: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the results in a file, with their offsets."""
    with opened_side(path, typed=True) as file:
        offset = 0
        for line in file:
            result = _parsed(line)
            if result is not None:
                yield offset, result
            offset += len(line)


def _parsed(line: bytes) -> dict[str, Any] | None:
    """Return a result; None if the line is none."""
    try:
        value = exact_json.loads(line)
    except MMPromptError:
        return None
    return value if isinstance(value, dict) and value.keys() >= _KEYS else None


def _body_of(result: Mapping[str, Any]) -> Mapping[str, Any]:
    response = result["response"]
    body = response.get("body") if isinstance(response, dict) else None
    return body if isinstance(body, dict) else {}


def _is_good(result: Mapping[str, Any]) -> bool:
    return result["error"] is None and bool(_body_of(result).get("choices"))


def _model_of(result: Mapping[str, Any]) -> str | None:
    name = _body_of(result).get("model")
    return name if isinstance(name, str) and name else None


def _answer_in(result: Mapping[str, Any]) -> Answer:
    """Return the reply of a result, or its error in the server's words."""
    body = _body_of(result)
    try:
        if result["error"] is None:
            return Answer(reply=reply_of(body))
    except (LookupError, TypeError, AttributeError):
        pass
    error, response = result["error"], result["response"]
    status = response.get("status_code") if isinstance(response, dict) else None
    words = said_in(json.dumps({"error": error} if error is not None else body).encode())
    code = error.get("code") if isinstance(error, dict) else status
    return Answer(error=ServerError(f"the batch answered {code}: {shown(words)}", "ask for this row again"))
