"""Names of a runner that a config mentions and we do not import: they stand for themselves and do nothing."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

PACKAGES = ("opencompass", "ais_bench", "mmengine")
"""The packages whose names a config may mention without their being there."""


class ConfigDict(dict[str, Any]):
    """A dict whose keys may be written as attributes, as mmengine gives what a config imports from another."""

    def __getattr__(self, name: str) -> Any:
        """Return the value of a key."""
        if name in self:
            return self[name]
        raise AttributeError(f"the config has no {name!r}")

    def __setattr__(self, name: str, value: object) -> None:
        """Set the value of a key."""
        self[name] = value

    def deepcopy(self) -> ConfigDict:
        """Return a copy all the way down."""
        return copy.deepcopy(self)

    def __deepcopy__(self, memo: dict[int, object]) -> ConfigDict:
        return ConfigDict({copy.deepcopy(k, memo): copy.deepcopy(v, memo) for k, v in self.items()})

    def __reduce__(self) -> tuple[object, ...]:
        return (ConfigDict, (dict(self),))


def as_config(value: Any, seen: dict[int, Any] | None = None) -> Any:
    """Return nested plain data with its dicts as ``ConfigDict``; lists stay themselves, and one object stays one."""
    seen = {} if seen is None else seen
    if id(value) in seen:
        return seen[id(value)]
    if type(value) in (dict, ConfigDict):
        made = seen[id(value)] = ConfigDict()
        made.update({k: as_config(v, seen) for k, v in value.items()})
        return made
    if type(value) is list:
        seen[id(value)] = value
        value[:] = [as_config(v, seen) for v in value]
    return value


class RunnerStub:
    """A name under one of ``PACKAGES``.

    It may be called, indexed, or-ed, added, written into a text, or entered as a context, and is a name again. Its
    value is unknown, so it cannot be iterated over or measured. ``dotted`` is the name; ``stub_texts`` collects the
    texts that stubs were written into.
    """

    __slots__ = ("__weakref__", "dotted", "stub_texts")
    dotted: str
    stub_texts: set[str]

    def __init__(self, dotted: str, stub_texts: set[str]) -> None:
        self.dotted = dotted
        self.stub_texts = stub_texts

    @property
    def short(self) -> str:
        """The last of its dotted words."""
        return self.dotted.rpartition(".")[2]

    def _derived(self, suffix: str) -> RunnerStub:
        return RunnerStub(self.dotted + suffix, self.stub_texts)

    def __getattr__(self, name: str) -> RunnerStub:
        """Return the name below this one; what Python itself looks for is not there."""
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(f"{self.dotted} has no {name}")
        return self._derived(f".{name}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return a name for the result; a ``ConfigDict`` is the dict that it is."""
        return ConfigDict(*args, **kwargs) if self.short == "ConfigDict" else self._derived("()")

    def __getitem__(self, key: object) -> RunnerStub:
        return self._derived("[]")

    def __enter__(self) -> RunnerStub:
        """Enter ``with read_base():``, which says that what it imports are configs."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Leave; an exception passes through."""

    def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type, ...]:
        """Be no base of a class that names it as one."""
        return ()

    def __str__(self) -> str:
        """Write the name, and remember that a text now holds it in place of its value."""
        text = f"<{self.dotted}>"
        self.stub_texts.add(text)
        return text

    def __format__(self, spec: str) -> str:
        """Write the name whatever the format."""
        return str(self)

    def __repr__(self) -> str:
        return str(self)

    def __iter__(self) -> Iterator[Any]:
        """Refuse: an empty loop would lose what the config means.

        Raises:
            TypeError: always.
        """
        return self._unknown("iterated over")

    def __len__(self) -> int:
        return self._unknown("measured")

    def __bool__(self) -> bool:
        """Be there."""
        return True

    def _unknown(self, verb: str) -> NoReturn:
        what = f"{self.dotted} cannot be {verb}: a config is read without {self.dotted.partition('.')[0]}"
        raise TypeError(what)

    def __copy__(self) -> RunnerStub:
        return self

    def __deepcopy__(self, memo: object) -> RunnerStub:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return (RunnerStub, (self.dotted, set(self.stub_texts)))


def _operator(symbol: str) -> Callable[[RunnerStub, object], RunnerStub]:
    def operate(self: RunnerStub, other: object) -> RunnerStub:  # noqa: ARG001  # whatever it is, the result is unknown
        return RunnerStub(f"{self.dotted}{symbol}…", self.stub_texts)

    return operate


for _method, _symbol in {"or": "|", "and": "&", "add": "+", "sub": "-", "mul": "*", "mod": "%", "truediv": "/"}.items():
    setattr(RunnerStub, f"__{_method}__", _operator(_symbol))
    setattr(RunnerStub, f"__r{_method}__", _operator(_symbol))
