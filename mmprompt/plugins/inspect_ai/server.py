"""Whether the server of our model provider is there: inspect-ai would ask a dead one again and again."""

from __future__ import annotations

import os

from inspect_ai.model import ModelName, get_model

from mmprompt.errors import ServerError
from mmprompt.plugins.inspect_ai.messages import OURS

_SECONDS = 15.0


def require_server() -> None:
    """Raise an error if the run's model is of our provider and its server takes no connection.

    Raises:
        ServerError: the server cannot be reached.
    """
    try:
        model = get_model()
    except ValueError:  # no model yet
        return
    if str(ModelName(model).api) != OURS:
        return
    from openai import APIConnectionError, APITimeoutError, OpenAI, OpenAIError  # noqa: PLC0415  # the provider needs it

    address = str(model.api.base_url)
    try:  # no key goes there: only whether it answers counts
        OpenAI(base_url=address, api_key="none", max_retries=0, timeout=_SECONDS).models.list()
    except APITimeoutError:
        return
    except APIConnectionError:
        hint = f"start the server, or correct {_setting(str(model.api.service), address)}"
        raise ServerError(f"the server at {address} cannot be reached", hint) from None
    except OpenAIError:  # it answers
        return


def _setting(service: str, address: str) -> str:
    """Return the variable or option that gave the address of a service."""
    variable = f"{service.upper().replace('-', '_')}_BASE_URL"
    for_all = "INSPECT_EVAL_MODEL_BASE_URL"
    return next((name for name in (variable, for_all) if os.environ.get(name) == address), "--model-base-url")
