"""The tools of a prompt: a list, or a function that returns one for each call."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import NamedTuple, Union

from mmprompt.errors import MMPromptError, TemplateError
from mmprompt.targets.json_values import JSONObject, plain

ToolList = list[JSONObject]
"""Descriptions of functions, as OpenAI's API has them."""


class ToolSource(NamedTuple):
    """A function that returns the tools of a call, and which of ``query`` and ``history`` are its arguments."""

    function: Callable[..., object]
    parameters: tuple[str, ...]

    def tools(self, query: object, history: object) -> ToolList:
        """Return the tools for one call.

        Raises:
            TemplateError: the function does not return a list of tools.
        """
        known = {"query": query, "history": history}
        return tool_list(self.function(**{name: known[name] for name in self.parameters}))


def source_of(tools: object) -> Union[ToolList, ToolSource]:
    """Return the tools of the construction: a copy of the list, or the function.

    Raises:
        TemplateError: neither a list of mappings nor a function.
    """
    if not callable(tools):
        return tool_list(tools)
    names = inspect.signature(tools).parameters
    return ToolSource(tools, tuple([name for name in ("query", "history") if name in names]))


def tool_list(tools: object) -> ToolList:
    """Return a copy of a list of tools. ``None`` becomes an empty list.

    Raises:
        TemplateError: not a list of mappings, or a tool that JSON cannot hold.
    """
    if tools is None:
        return []
    if not isinstance(tools, (list, tuple)) or not all(isinstance(tool, Mapping) for tool in tools):
        raise TemplateError("tools are not a list of mappings", "give [{'type': 'function', 'function': {'name': …}}]")
    try:
        return plain(tools)  # type: ignore[return-value]  # a list of mappings gives a list of dicts
    except MMPromptError as error:
        raise TemplateError(error.what, error.hint, error.where).located(template="tools") from None
