"""Holds the requests of a row against what targets take."""

from __future__ import annotations

from functools import cached_property

from mmprompt.datasets.sample import Sample
from mmprompt.errors import MMPromptError, TargetError
from mmprompt.messages import Message
from mmprompt.render.builder import RequestBuilder
from mmprompt.targets.limits import target_names


class TargetCheck:
    """Writes requests for a target, and collects what it refuses.

    Args:
        builder: writes for the target, or for some target if none is named.
        named: a target is named; without one only what every target refuses counts.
    """

    def __init__(self, builder: RequestBuilder, *, named: bool) -> None:
        self._builder = builder
        self._named = named

    @cached_property
    def _others(self) -> list[RequestBuilder]:
        names = [name for name in target_names() if name != self._builder.target]
        policy = self._builder.media.reader.policy
        return [RequestBuilder(self._builder.task, name, media="inline", policy=policy) for name in names]

    def errors(self, sample: Sample, requests: list[list[Message]]) -> list[MMPromptError]:
        """Return an error for each request that cannot be written; their media are read."""
        found = []
        for messages in requests:
            error = _refusal(self._builder, sample, messages)
            if isinstance(error, TargetError) and not self._named:
                refusals = [_refusal(other, sample, messages) for other in self._others]
                error = error if all(refusals) else None
            if error is not None:
                found.append(error)
        return found


def _refusal(builder: RequestBuilder, sample: Sample, messages: list[Message]) -> MMPromptError | None:
    try:
        builder.wire(sample, messages)
    except MMPromptError as error:
        return error
    return None
