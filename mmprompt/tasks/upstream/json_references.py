"""References in a promptfoo config: ``{$ref: '#/assertionTemplates/short'}`` stands for the value under these keys."""

from __future__ import annotations

from collections.abc import Mapping

from mmprompt.errors import TaskError, nearest, shown
from mmprompt.tasks.config import Section
from mmprompt.tasks.section_values import ConfigValue

_REF = "$ref"
_DEPTH = 50
_MOST_VALUES = 1 << 20


class References:
    """Replaces the references of one config. ``used`` are the top keys that they name."""

    def __init__(self, config: Section) -> None:
        self.used: set[str] = set()
        self._config = config
        self._left = _MOST_VALUES

    def resolved(self, value: ConfigValue, depth: int = _DEPTH) -> ConfigValue:
        """Return a value with what its references name.

        Raises:
            TaskError: a reference names no value, or references stand for too many values.
        """
        self._left -= 1
        if not depth or not self._left:
            raise TaskError("the references of the config nest too deeply", f"write the values out in place of {_REF}")
        if isinstance(value, Mapping):
            if isinstance(name := value.get(_REF), str):
                return self.resolved(self._named(name), depth - 1)
            return {key: self.resolved(held, depth - 1) for key, held in value.items()}
        return [self.resolved(item, depth - 1) for item in value] if isinstance(value, list) else value

    def _named(self, name: str) -> ConfigValue:
        if not name.startswith("#/"):
            raise TaskError(f"{_REF} names {shown(name)}, which is not in the config", "write the value out")
        keys = name[2:].split("/")
        self.used.add(keys[0])
        found: ConfigValue = self._config
        for key in keys:
            if not isinstance(found, Mapping) or key not in found:
                known = found if isinstance(found, Mapping) else ()
                raise TaskError(f"{_REF} names {shown(key)}, which is not there", nearest(key, known))
            found = found[key]
        return found
