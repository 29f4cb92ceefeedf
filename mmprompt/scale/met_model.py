"""A model that the shards of a run share, though each asks it from a process of its own."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from mmprompt.datasets.side_files import side_output
from mmprompt.render.request import Request
from mmprompt.run.model import Answer, Model
from mmprompt.targets.json_values import JSONValue


class MetModel:
    """A model whose refusals end the run only if no shard of the run has had a reply: else they are those of rows.

    Args:
        model: the model.
        path: a file that the first reply makes. All shards of a run have the same.
    """

    def __init__(self, model: Model, path: str) -> None:
        self._model = model
        self._path = path
        self._is_met = False
        self.name = model.name
        self.target = model.target
        self.batch = model.batch
        self.concurrency = model.concurrency

    def ask(self, requests: Sequence[Request], options: Mapping[str, JSONValue]) -> list[Answer]:
        """Return the answers of the model."""
        return self._known(self._model.ask(requests, options))

    def perplexities(self, requests: Sequence[Request]) -> list[Answer]:
        """Return the perplexities of the model."""
        return self._known(self._model.perplexities(requests))

    def close(self) -> None:
        """Close the model."""
        self._model.close()

    def _known(self, answers: list[Answer]) -> list[Answer]:
        if not self._is_met and any(answer.error is None for answer in answers):
            with side_output(self._path, cleans=False):
                self._is_met = True
        if any(answer.hopeless for answer in answers) and (self._is_met or os.path.exists(self._path)):
            return [answer._replace(hopeless=False) for answer in answers]
        return answers
