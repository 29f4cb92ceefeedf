"""Which of OpenCompass's models carry our messages, so that the others are refused before the run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mmprompt.errors import TargetError, Where
from mmprompt.plugins.bridge.row_faults import caller_with
from mmprompt.targets.json_values import JSONObject

CARRYING = ("OpenAI", "OpenAISDK", "OpenAISDKRollout", "OpenAISDKStreaming", "LiteLLMAPI")
"""Those that send messages with OpenAI's content parts."""

CLAUDE = "ClaudeSDK"
"""It sends messages with Anthropic's blocks."""

TEXT_ONLY = ("GeminiSDK", "OpenAISDKResponse")
"""They would send a list of content parts as if it were a text, or in a form that their server does not take."""

_OWN = "opencompass.models"
_BASES = ("BaseModel", "BaseAPIModel")
_SETTING = Where(setting="model")


class AskedModel:
    """The model that the prompts of a template go to; ``target`` is that of the template."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._name: str | None = None

    def check(self, messages: Iterable[JSONObject]) -> None:
        """Refuse messages that the model would not carry, once OpenCompass's inferencer asks for them.

        A class of the user's own that inherits from OpenCompass's base classes alone is not looked at.

        Raises:
            TargetError: the model cannot carry them; the error names the model.
        """
        if self._name is None:
            self._name = _stock_name(getattr(caller_with("model"), "model", None))
        name = self._name
        if name == CLAUDE and self._target != "anthropic":
            raise TargetError(f"{name} takes Anthropic's blocks", 'give the template target="anthropic"', _SETTING)
        if name not in ("", CLAUDE) and self._target == "anthropic":
            raise TargetError(f"{name} does not take Anthropic's blocks", "leave target out", _SETTING)
        hint = f"use one of {', '.join((*CARRYING, CLAUDE))}"
        if name in TEXT_ONLY and any(not isinstance(message["content"], str) for message in messages):
            raise TargetError(f"{name} carries text alone", hint, _SETTING)
        if name not in ("", CLAUDE, *CARRYING, *TEXT_ONLY):
            raise TargetError(f"{name} does not take messages", hint + ", or MMPromptText", _SETTING)


def _stock_name(model: Any) -> str:
    """Return the name of the class of OpenCompass that a model has or inherits from; empty if it has only its bases."""
    names = [kind.__name__ for kind in type(model).__mro__ if kind.__module__.startswith(_OWN)]
    return names[0] if names and names[0] not in _BASES else ""
