"""The tools of a prompt: a list, or a function that is asked for one at each call."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Union

from mmprompt.errors import MMPromptError, TemplateError
from mmprompt.targets.json_values import plain

ToolList = list[dict[str, Any]]


class ToolSource(NamedTuple):
    """A function that gives the tools of a call, and which of ``query`` and ``history`` it asks for."""

    function: Callable[..., object]
    asks: tuple[str, ...]

    def tools(self, query: object, history: object) -> ToolList:
        """Return the tools for one call.

        Raises:
            TemplateError: the function gave no list of tools.
        """
        known = {"query": query, "history": history}
        return tool_list(self.function(**{name: known[name] for name in self.asks}))


def source_of(tools: object) -> Union[ToolList, ToolSource]:
    """Return the tools given at construction: a copy of the list, or the function.

    Raises:
        TemplateError: neither a list of mappings nor a function.
    """
    if not callable(tools):
        return tool_list(tools)
    names = inspect.signature(tools).parameters
    return ToolSource(tools, tuple([name for name in ("query", "history") if name in names]))


def tool_list(tools: object) -> ToolList:
    """Return a copy of a list of tools; None is none.

    Raises:
        TemplateError: no list of mappings, or a tool that JSON cannot hold.
    """
    if tools is None:
        return []
    if not isinstance(tools, (list, tuple)) or not all(isinstance(tool, Mapping) for tool in tools):
        raise TemplateError("tools are no list of mappings", "give [{'type': 'function', 'function': {'name': …}}]")
    try:
        return plain(tools)  # type: ignore[return-value]  # a list of mappings gives a list of dicts
    except MMPromptError as error:
        raise TemplateError(f"tools: {error.what}", error.hint) from None
