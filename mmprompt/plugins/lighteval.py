"""lighteval: a request as its ``Doc``, for prompt functions of tasks of one's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from mmprompt.errors import TargetError
from mmprompt.messages import Message, TextPart
from mmprompt.plugins.bridge.requests import answer_texts, request_name
from mmprompt.plugins.bridge.single_prompt import single_prompt
from mmprompt.render.request import Request
from mmprompt.run.scorers.choice import right_choice
from mmprompt.targets.hf import to_hf

if TYPE_CHECKING:
    from lighteval.tasks.requests import Doc

    from mmprompt.targets.json_values import JSONValue


def to_lighteval(request: Request, task_name: str = "mmprompt") -> Doc:
    """Return a request as a ``Doc``: the text, the pictures as PIL images, the choices or answers, and the right ones.

    lighteval puts the text before the pictures, whichever came first in the row. A system message is the instruction.

    Raises:
        TargetError: the request has other turns or media, or text on both sides of a picture, which lighteval reorders.
        SourceError: a picture cannot be decoded.
    """
    from lighteval.tasks.requests import Doc  # noqa: PLC0415  # absent unless installed

    system, parts = single_prompt(request, "lighteval", ("image",), system=True)
    sides = [isinstance(part, TextPart) for part in parts]
    if sides != sorted(sides) and sides != sorted(sides, reverse=True):
        raise TargetError("lighteval puts all text before the pictures, and the row mixes them", "use another runner")
    pictures = tuple(part for part in parts if not isinstance(part, TextPart))
    answers = answer_texts(request)
    right = (
        [right_choice(cast("JSONValue", answer), request.choices) for answer in request.answers]
        if request.choices
        else []
    )
    if -1 in right:
        raise TargetError("an answer of the row is none of its choices", "correct the answer")
    return Doc(
        query="\n".join(part.text for part in parts if isinstance(part, TextPart)),
        choices=list(request.choices) or answers,
        gold_index=right or list(range(len(answers))),
        instruction=system or None,
        images=list(to_hf([Message("user", pictures)]).images) if pictures else None,
        id=str(request_name(request)),
        task_name=task_name,
    )
